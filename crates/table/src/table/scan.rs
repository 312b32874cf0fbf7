//! Reading all rows of a version.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use deltaic_batch::Result;

use crate::Storage;
use crate::delta::actions::Add;
use crate::files::read_rows;

/// Rows of one file.
type Rows = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// Opens one file after the other.
pub(super) struct Scan {
    pub(super) storage: Storage,
    pub(super) root: Storage,
    pub(super) schema: SchemaRef,
    pub(super) files: std::vec::IntoIter<Arc<Add>>,
    pub(super) current: Option<Rows>,
}

impl Scan {
    fn open_next(&mut self) -> Option<Result<Rows>> {
        let add = self.files.next()?;
        let rows = read_rows(&self.storage, &self.root, &add, &self.schema);
        Some(rows.map(|rows| Box::new(rows) as Rows))
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(rows) = self.current.as_mut().and_then(Iterator::next) {
                match rows {
                    Ok(rows) if rows.num_rows() == 0 => continue,
                    rows => return Some(rows),
                }
            }
            match self.open_next()? {
                Ok(rows) => self.current = Some(rows),
                Err(e) => {
                    self.files = Vec::new().into_iter();
                    return Some(Err(e));
                }
            }
        }
    }
}

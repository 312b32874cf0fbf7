//! Rows of an arrangement as bytes, each by itself: equal rows are equal bytes, and rows of one key
//! are in the arrangement's order when their bytes are.

use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, Rows, SortField};
use deltaic_batch::{Result, canonicalize};

use crate::arrangement::ArrangementSpec;
use crate::frame::corrupt;

/// Turns rows into bytes and back.
#[derive(Debug)]
pub(in crate::arrangement) struct RowCodec {
    schema: SchemaRef,
    /// Columns in the order in which they are encoded: key, order, the others.
    columns: Vec<usize>,
    converter: RowConverter,
    types: u32,
}

impl RowCodec {
    pub(in crate::arrangement) fn try_new(spec: &ArrangementSpec) -> Result<Self> {
        let mut columns = Vec::new();
        let mut fields = Vec::new();
        let ordered = spec.order.iter().map(|key| {
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            (key.column, SortOptions { descending, nulls_first })
        });
        let plain = |column| (column, SortOptions::default());
        let all = 0..spec.schema.fields().len();
        let key = spec.key.iter().copied().map(plain);
        for (column, options) in key.chain(ordered).chain(all.map(plain)) {
            if !columns.contains(&column) {
                columns.push(column);
                let data_type = spec.schema.field(column).data_type().clone();
                fields.push(SortField::new_with_options(data_type, options));
            }
        }
        let types: Vec<&DataType> = spec.schema.fields().iter().map(|f| f.data_type()).collect();
        let types =
            crc32fast::hash(format!("{types:?} {:?} {:?}", spec.key, spec.order).as_bytes());
        let converter = RowConverter::new(fields)?;
        Ok(Self { schema: spec.schema.clone(), columns, converter, types })
    }

    /// The types of the rows, as a number: bytes of other rows must not be taken for theirs.
    pub(super) fn types(&self) -> u32 {
        self.types
    }

    /// The bytes of rows that have columns; `None` if they have none, and no bytes either.
    pub(super) fn encode(&self, columns: &[ArrayRef]) -> Result<Option<Rows>> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = self.columns.iter().map(|&c| columns[c].clone()).collect();
        Ok(Some(self.converter.convert_columns(&columns)?))
    }

    /// The columns of rows that were encoded.
    pub(super) fn decode<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        let parser = self.converter.parser();
        let mut columns = self.converter.convert_rows(rows.map(|row| parser.parse(row)))?;
        let mut out: Vec<ArrayRef> =
            (self.schema.fields().iter()).map(|field| new_empty_array(field.data_type())).collect();
        for &column in self.columns.iter().rev() {
            let array = columns.pop().ok_or_else(|| corrupt("a column is missing"))?;
            let data_type = self.schema.field(column).data_type();
            // Values of dictionaries come back plain, and floats that are NULL with any bits.
            let same = array.data_type() == data_type;
            out[column] = canonicalize(&if same { array } else { cast(&array, data_type)? });
        }
        Ok(out)
    }
}

/// Rows as bytes, one after the other, with their hashes and weights.
#[derive(Debug, Default)]
pub(in crate::arrangement) struct EncodedRows {
    pub(in crate::arrangement) hashes: Vec<u64>,
    pub(in crate::arrangement) weights: Vec<i64>,
    ends: Vec<usize>,
    data: Vec<u8>,
}

impl EncodedRows {
    pub(super) fn push(&mut self, hash: u64, row: &[u8], weight: i64) {
        self.data.extend_from_slice(row);
        self.ends.push(self.data.len());
        self.hashes.push(hash);
        self.weights.push(weight);
    }

    pub(in crate::arrangement) fn len(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn row(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.data[start..self.ends[row]]
    }

    /// The columns of the rows.
    pub(in crate::arrangement) fn columns(&self, codec: &RowCodec) -> Result<Vec<ArrayRef>> {
        codec.decode((0..self.len()).map(|row| self.row(row)))
    }

    /// By hash and bytes, equal rows as one, without those of weight 0.
    pub(super) fn consolidated(self) -> Result<Self> {
        let key = |row: usize| (self.hashes[row], self.row(row));
        if (1..self.len()).all(|row| key(row - 1) < key(row)) && !self.weights.contains(&0) {
            return Ok(self);
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)));
        let mut out = Self::default();
        for same in order.chunk_by(|&a, &b| key(a) == key(b)) {
            let weights = same.iter().map(|&row| self.weights[row]);
            let weight = weights.into_iter().try_fold(0_i64, i64::checked_add);
            let weight = weight.ok_or_else(crate::arrangement::weight_overflow)?;
            if weight != 0 {
                out.push(self.hashes[same[0]], self.row(same[0]), weight);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::datatypes::{Field, Fields, Int32Type, Schema};

    use super::*;
    use crate::SortKey;

    /// The bytes are stored: if this fails after an update of arrow-row, raise
    /// [`crate::frame::VERSION`] with the new bytes.
    #[test]
    fn the_bytes_of_a_row_are_known() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None]), None]);
        let text: ArrayRef = Arc::new(StringArray::from(vec![Some("nine bytes"), Some("")]));
        let fields = Fields::from(vec![Field::new("s", DataType::Utf8, true)]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(-2), None])),
            text.clone(),
            Arc::new(Float64Array::from(vec![0.5, f64::NAN])),
            Arc::new(Decimal128Array::from(vec![Some(7), None])),
            Arc::new(BooleanArray::from(vec![true, false])),
            Arc::new(list),
            Arc::new(StructArray::new(fields, vec![text.clone()], None)),
            arrow::compute::cast(&text, &DataType::Utf8View).unwrap(),
            arrow::compute::cast(
                &text,
                &DataType::Dictionary(DataType::Int8.into(), DataType::Utf8.into()),
            )
            .unwrap(),
        ];
        let fields = columns.iter().zip('a'..);
        let fields = fields.map(|(c, n)| Field::new(n.to_string(), c.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let order = vec![SortKey { column: 2, descending: true, nulls_first: false }];
        let spec = ArrangementSpec { schema, key: vec![3, 0], order };
        let codec = RowCodec::try_new(&spec).unwrap();
        let rows = codec.encode(&columns).unwrap().unwrap();
        let hex = |row: usize| -> String {
            rows.row(row).data().iter().map(|byte| format!("{byte:02x}")).collect()
        };
        assert_eq!(
            hex(0),
            "0180000000000000000000000000000007017ffffffffffffffe01401fffffffffffff026e696e65\
             20627974ff657300000000000002010102018000000100000005020000000000000000050101026e\
             696e6520627974ff657300000000000002026e696e6520627974ff657300000000000002026e696e\
             6520627974ff657300000000000002"
        );
        assert_eq!(
            hex(1),
            "0000000000000000000000000000000000000000000000000000010007ffffffffffff0101000001\
             010101"
        );
        let decoded = codec.decode((0..2).map(|row| rows.row(row).data())).unwrap();
        assert_eq!(decoded, columns);
    }

    #[test]
    fn what_comes_back_is_canonical() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(-1.5), Some(f64::NAN)]));
        let schema = Arc::new(Schema::new(vec![Field::new("f", DataType::Float64, true)]));
        for descending in [false, true] {
            let order = vec![SortKey { column: 0, descending, nulls_first: descending }];
            let spec = ArrangementSpec { schema: schema.clone(), key: vec![], order };
            let codec = RowCodec::try_new(&spec).unwrap();
            let rows = codec.encode(std::slice::from_ref(&floats)).unwrap().unwrap();
            let decoded = codec.decode(rows.iter().map(|row| row.data())).unwrap();
            assert_eq!(decoded, std::slice::from_ref(&floats));
            assert!(Arc::ptr_eq(&decoded[0], &canonicalize(&decoded[0])));
        }
    }
}

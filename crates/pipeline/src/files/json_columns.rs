//! JSON values as a column of a type, recursively.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, LargeListArray, ListArray, MapArray, StringArray, StringBuilder, StructArray,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use deltaic_batch::{Error, Result};

use super::convert::convert;
use super::json::Json;
use super::options::FileOptions;

/// One value per row; `None` where the row has no such field.
pub(super) type Cells<'v, 'a> = [Option<&'v Json<'a>>];

/// The column, and the rows whose value does not fit the type (ascending).
pub(super) fn column(
    cells: &Cells<'_, '_>,
    to: &DataType,
    options: &FileOptions,
) -> Result<(ArrayRef, Vec<usize>)> {
    match to {
        DataType::Struct(fields) => structs(cells, fields, options),
        DataType::List(item) => {
            let (offsets, nulls, values, bad) = lists(cells, item, options)?;
            let offsets = OffsetBuffer::<i32>::from_lengths(offsets);
            Ok((Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?), bad))
        }
        DataType::LargeList(item) => {
            let (offsets, nulls, values, bad) = lists(cells, item, options)?;
            let offsets = OffsetBuffer::<i64>::from_lengths(offsets);
            Ok((Arc::new(LargeListArray::try_new(item.clone(), offsets, values, nulls)?), bad))
        }
        DataType::Map(entries, sorted) => maps(cells, entries, *sorted, options),
        _ => scalars(cells, to, options),
    }
}

fn is_text(to: &DataType) -> bool {
    matches!(to, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn scalars(
    cells: &Cells<'_, '_>,
    to: &DataType,
    options: &FileOptions,
) -> Result<(ArrayRef, Vec<usize>)> {
    let (text, boolean) = (is_text(to), to == &DataType::Boolean);
    let mut texts = StringBuilder::with_capacity(cells.len(), cells.len() * 8);
    let mut misfits = Vec::new();
    for (i, cell) in cells.iter().enumerate() {
        match cell {
            None | Some(Json::Null) => texts.append_null(),
            Some(Json::String(s)) => texts.append_value(s),
            Some(Json::Number(n)) if !boolean => texts.append_value(n),
            Some(Json::Bool(b)) if boolean || text => texts.append_value(b.to_string()),
            Some(Json::Array(_, raw) | Json::Object(_, raw)) if text => texts.append_value(raw),
            Some(_) => {
                texts.append_null();
                misfits.push(i);
            }
        }
    }
    let texts: StringArray = texts.finish();
    let (array, mut bad) = convert(&texts, to, options)?;
    if !misfits.is_empty() {
        bad.extend(misfits);
        bad.sort_unstable();
    }
    Ok((array, bad))
}

fn structs(
    cells: &Cells<'_, '_>,
    fields: &Fields,
    options: &FileOptions,
) -> Result<(ArrayRef, Vec<usize>)> {
    let mut bad = Vec::new();
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let children: Vec<Option<&Json<'_>>> = cells
            .iter()
            .map(|cell| match cell {
                Some(Json::Object(members, _)) => members
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(field.name()))
                    .map(|(_, value)| value),
                _ => None,
            })
            .collect();
        let (array, child_bad) = column(&children, field.data_type(), options)?;
        columns.push(array);
        bad.extend(child_bad);
    }
    let nulls: Vec<bool> = cells
        .iter()
        .enumerate()
        .map(|(i, cell)| match cell {
            Some(Json::Object(..)) => true,
            None | Some(Json::Null) => false,
            Some(_) => {
                bad.push(i);
                false
            }
        })
        .collect();
    bad.sort_unstable();
    bad.dedup();
    let nulls = Some(NullBuffer::from(nulls));
    if fields.is_empty() {
        return Ok((Arc::new(StructArray::new_empty_fields(cells.len(), nulls)), bad));
    }
    let fields: Fields = fields.iter().map(nullable).collect();
    Ok((Arc::new(StructArray::try_new(fields, columns, nulls)?), bad))
}

fn nullable(field: &FieldRef) -> FieldRef {
    Arc::new(Field::clone(field).with_nullable(true))
}

type Lists = (Vec<usize>, Option<NullBuffer>, ArrayRef, Vec<usize>);

fn lists(cells: &Cells<'_, '_>, item: &FieldRef, options: &FileOptions) -> Result<Lists> {
    let (mut lengths, mut valid, mut bad) = (Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut owners) = (Vec::new(), Vec::new());
    for (i, cell) in cells.iter().enumerate() {
        match cell {
            Some(Json::Array(items, _)) => {
                values.extend(items.iter().map(Some));
                owners.resize(values.len(), i);
                lengths.push(items.len());
                valid.push(true);
            }
            other => {
                if !matches!(other, None | Some(Json::Null)) {
                    bad.push(i);
                }
                lengths.push(0);
                valid.push(false);
            }
        }
    }
    let (array, child_bad) = column(&values, item.data_type(), options)?;
    bad.extend(child_bad.into_iter().map(|child| owners[child]));
    bad.sort_unstable();
    bad.dedup();
    Ok((lengths, Some(NullBuffer::from(valid)), array, bad))
}

fn maps(
    cells: &Cells<'_, '_>,
    entries: &FieldRef,
    sorted: bool,
    options: &FileOptions,
) -> Result<(ArrayRef, Vec<usize>)> {
    let DataType::Struct(pair) = entries.data_type() else {
        return Ok((new_null_array(&DataType::Map(entries.clone(), sorted), cells.len()), vec![]));
    };
    let [key, value] = pair.as_ref() else {
        return Err(Error::internal("MAP_TYPE", "a map type without key and value"));
    };
    let (mut lengths, mut valid, mut bad) = (Vec::new(), Vec::new(), Vec::new());
    let (mut keys, mut values, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (i, cell) in cells.iter().enumerate() {
        match cell {
            Some(Json::Object(members, _)) => {
                keys.extend(members.iter().map(|(name, _)| Json::String(name.clone())));
                values.extend(members.iter().map(|(_, value)| Some(value)));
                owners.resize(values.len(), i);
                lengths.push(members.len());
                valid.push(true);
            }
            other => {
                if !matches!(other, None | Some(Json::Null)) {
                    bad.push(i);
                }
                lengths.push(0);
                valid.push(false);
            }
        }
    }
    let keys: Vec<Option<&Json<'_>>> = keys.iter().map(Some).collect();
    let (keys, key_bad) = column(&keys, key.data_type(), options)?;
    let (values, value_bad) = column(&values, value.data_type(), options)?;
    bad.extend(key_bad.into_iter().chain(value_bad).map(|child| owners[child]));
    bad.sort_unstable();
    bad.dedup();
    let pairs = StructArray::try_new(pair.clone(), vec![keys, values], None)?;
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    let nulls = Some(NullBuffer::from(valid));
    let map = MapArray::try_new(entries.clone(), offsets, pairs, nulls, sorted)?;
    Ok((Arc::new(map), bad))
}

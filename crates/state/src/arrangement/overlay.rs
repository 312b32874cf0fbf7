//! The overlay: rows appended in recent epochs, by key in a hash table, the rows of a key in order.
//! It is folded into the base before it grows beyond a share of it.

use arrow::array::ArrayRef;
use deltaic_batch::{Result, equal_pairs};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::base::{NONE, weight_overflow};
use super::layout::{Layout, SortKeys};
use super::run::{Run, interleave_owned, row_number, take_owned};
use super::sorted_rows::{Place, SortedRows};

/// Recent rows of an arrangement.
#[derive(Debug)]
pub(super) struct Overlay {
    /// Columns of the rows in pieces, each at least about as large as all after it.
    chunks: Vec<Vec<ArrayRef>>,
    /// First row of each chunk.
    chunk_starts: Vec<u32>,
    pub(super) weights: Vec<i64>,
    pub(super) sort: SortKeys,
    group_of: Vec<u32>,
    groups: Vec<Group>,
    /// Groups by key hash.
    table: HashTable<u32>,
    live_rows: usize,
    /// Bytes of the groups' lists of rows.
    list_bytes: usize,
}

/// The rows of one key.
#[derive(Debug)]
pub(super) struct Group {
    hash: u64,
    /// A row that shows the key, live or not.
    key_row: u32,
    /// Live rows.
    pub(super) rows: SortedRows,
}

impl Overlay {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            chunks: Vec::new(),
            chunk_starts: Vec::new(),
            weights: Vec::new(),
            sort: layout.empty_sort_keys(),
            group_of: Vec::new(),
            groups: Vec::new(),
            table: HashTable::new(),
            live_rows: 0,
            list_bytes: 0,
        }
    }

    /// Number of rows, those of weight 0 included.
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    pub(super) fn live_rows(&self) -> usize {
        self.live_rows
    }

    pub(super) fn group(&self, group: u32) -> &Group {
        &self.groups[group as usize]
    }

    pub(super) fn chunks(&self) -> &[Vec<ArrayRef>] {
        &self.chunks
    }

    /// The chunk of a row, and the row's place in it.
    pub(super) fn locate(&self, row: u32) -> (usize, usize) {
        let chunk = self.chunk_starts.partition_point(|&start| start <= row) - 1;
        (chunk, (row - self.chunk_starts[chunk]) as usize)
    }

    /// The given columns of the given rows.
    fn gather(&self, columns: &[usize], rows: &[u32]) -> Result<Vec<ArrayRef>> {
        let order: Vec<(usize, usize)> = rows.iter().map(|&row| self.locate(row)).collect();
        let pick = |chunk: &Vec<ArrayRef>| columns.iter().map(|&c| chunk[c].clone()).collect();
        let sources: Vec<Vec<ArrayRef>> = self.chunks.iter().map(pick).collect();
        interleave_owned(&sources.iter().collect::<Vec<_>>(), &order)
    }

    /// The group of the key that each of `rows` of `key` has, or [`NONE`].
    pub(super) fn find_keys(
        &self,
        layout: &Layout,
        key: &[ArrayRef],
        hashes: &[u64],
        rows: &[u32],
    ) -> Result<Vec<u32>> {
        if self.groups.is_empty() {
            return Ok(vec![NONE; rows.len()]);
        }
        let find = |&row: &u32| {
            let hash = hashes[row as usize];
            self.table.find(hash, |&g| self.groups[g as usize].hash == hash).copied()
        };
        let mut found: Vec<u32> = rows.iter().map(|row| find(row).unwrap_or(NONE)).collect();
        let doubtful =
            |&i: &usize| found[i] != NONE && layout.must_compare(hashes[rows[i] as usize]);
        let hits: Vec<usize> = (0..rows.len()).filter(doubtful).collect();
        let left: Vec<u32> = hits.iter().map(|&i| rows[i]).collect();
        let key_rows: Vec<u32> =
            hits.iter().map(|&i| self.groups[found[i] as usize].key_row).collect();
        for hit in self.different_keys(layout, key, &left, &key_rows)? {
            let row = left[hit];
            found[hits[hit]] = self.find_other_key(layout, key, row, hashes[row as usize])?;
        }
        Ok(found)
    }

    fn different_keys(
        &self,
        layout: &Layout,
        key: &[ArrayRef],
        left: &[u32],
        key_rows: &[u32],
    ) -> Result<Vec<usize>> {
        if left.is_empty() {
            return Ok(Vec::new());
        }
        let ours = self.gather(layout.key_columns(), key_rows)?;
        let all: Vec<u32> = (0..row_number(left.len())).collect();
        layout.different_keys(key, left, &ours, &all)
    }

    /// The group whose key truly equals row `row` of `key`, among all of that hash.
    fn find_other_key(
        &self,
        layout: &Layout,
        key: &[ArrayRef],
        row: u32,
        hash: u64,
    ) -> Result<u32> {
        for &group in self.table.iter_hash(hash) {
            let Group { hash: group_hash, key_row, .. } = self.groups[group as usize];
            if group_hash == hash {
                let ours = self.gather(layout.key_columns(), &[key_row])?;
                if equal_pairs(key, &[row], &ours, &[0])? == [true] {
                    return Ok(group);
                }
            }
        }
        Ok(NONE)
    }

    /// The live row that equals each of `rows` of the whole rows `columns`, or [`NONE`].
    pub(super) fn find_rows(
        &self,
        layout: &Layout,
        columns: &[ArrayRef],
        hashes: &[u64],
        sort: &SortKeys,
        rows: &[u32],
    ) -> Result<Vec<u32>> {
        let groups = self.find_keys(layout, &layout.key_of(columns), hashes, rows)?;
        let search = |group: u32, row: u32| {
            let rows = &self.groups[group as usize].rows;
            rows.get(self.lower_bound(rows, sort, row))
                .filter(|&found| self.sort.compare(found, sort, row).is_eq())
        };
        let mut found: Vec<u32> = groups
            .iter()
            .zip(rows)
            .map(|(&g, &row)| if g == NONE { NONE } else { search(g, row).unwrap_or(NONE) })
            .collect();
        let hits: Vec<usize> = (0..rows.len()).filter(|&i| found[i] != NONE).collect();
        if hits.is_empty() {
            return Ok(found);
        }
        let left: Vec<u32> = hits.iter().map(|&i| rows[i]).collect();
        let right: Vec<u32> = hits.iter().map(|&i| found[i]).collect();
        let theirs = layout.rest_of(columns);
        let ours = self.gather(layout.rest_columns(), &right)?;
        let all: Vec<u32> = (0..row_number(hits.len())).collect();
        let equal = equal_pairs(&theirs, &left, &ours, &all)?;
        for (hit, &at) in hits.iter().enumerate().filter(|(hit, _)| !equal[*hit]) {
            let group = &self.groups[groups[at] as usize];
            found[at] = self.find_twin(layout, group, &theirs, sort, left[hit])?.unwrap_or(NONE);
        }
        Ok(found)
    }

    fn lower_bound(&self, rows: &SortedRows, sort: &SortKeys, row: u32) -> Place {
        rows.lower_bound(|ours| self.sort.compare(ours, sort, row).is_lt())
    }

    /// The row of a group that truly equals row `row`, whose columns outside the key are `rest`,
    /// among all with its sort key.
    fn find_twin(
        &self,
        layout: &Layout,
        group: &Group,
        rest: &[ArrayRef],
        sort: &SortKeys,
        row: u32,
    ) -> Result<Option<u32>> {
        let mut place = self.lower_bound(&group.rows, sort, row);
        while let Some(ours) = group.rows.get(place) {
            if self.sort.compare(ours, sort, row).is_ne() {
                break;
            }
            let other = self.gather(layout.rest_columns(), &[ours])?;
            if equal_pairs(rest, &[row], &other, &[0])? == [true] {
                return Ok(Some(ours));
            }
            place = group.rows.after(place);
        }
        Ok(None)
    }

    /// Adds to the weight of a row; one that reaches 0 leaves its group's list.
    pub(super) fn add(&mut self, row: u32, weight: i64) -> Result<()> {
        let sum = &mut self.weights[row as usize];
        let before = *sum;
        *sum = before.checked_add(weight).ok_or_else(weight_overflow)?;
        let after = *sum;
        if (before == 0) == (after == 0) {
            return Ok(());
        }
        let group = &mut self.groups[self.group_of[row as usize] as usize];
        let sort = &self.sort;
        let mut place = group.rows.lower_bound(|r| sort.compare(r, sort, row).is_lt());
        if before == 0 {
            self.list_bytes += group.rows.insert(place, row);
            self.live_rows += 1;
        } else {
            while group.rows.get(place).is_some_and(|r| r != row) {
                place = group.rows.after(place);
            }
            self.list_bytes -= group.rows.remove(place);
            self.live_rows -= 1;
        }
        Ok(())
    }

    /// Appends the rows at `rows`, none of which is in the overlay yet.
    pub(super) fn insert(&mut self, layout: &Layout, run: &Run, rows: &[u32]) -> Result<()> {
        let start = row_number(self.len());
        self.chunks.push(take_owned(&run.columns, rows.to_vec())?);
        self.chunk_starts.push(start);
        for &row in rows {
            self.weights.push(run.weights[row as usize]);
            self.sort.push(&run.sort, row);
        }
        self.merge_chunks()?;
        self.assign_groups(layout, run, rows, start)?;
        for (row, &theirs) in (start..).zip(rows) {
            self.insert_row(layout, run, theirs, row)?;
        }
        Ok(())
    }

    /// Puts each new row into the group of its key.
    fn assign_groups(
        &mut self,
        layout: &Layout,
        run: &Run,
        rows: &[u32],
        start: u32,
    ) -> Result<()> {
        let (mut added, mut theirs, mut key_rows) = (Vec::new(), Vec::new(), Vec::new());
        for (row, &their_row) in (start..).zip(rows) {
            let hash = run.hashes[their_row as usize];
            let group = self.find_or_add_group(hash, row);
            let key_row = self.groups[group as usize].key_row;
            if key_row != row && layout.must_compare(hash) {
                added.push(row);
                theirs.push(their_row);
                key_rows.push(key_row);
            }
            self.group_of.push(group);
        }
        let key = layout.key_of(&run.columns);
        for i in self.different_keys(layout, &key, &theirs, &key_rows)? {
            let hash = run.hashes[theirs[i] as usize];
            let mut group = self.find_other_key(layout, &key, theirs[i], hash)?;
            if group == NONE {
                group = self.add_group(hash, added[i]);
                let groups = &self.groups;
                self.table.insert_unique(hash, group, |&g| groups[g as usize].hash);
            }
            self.group_of[added[i] as usize] = group;
        }
        Ok(())
    }

    fn find_or_add_group(&mut self, hash: u64, row: u32) -> u32 {
        let groups = &self.groups;
        let same = |&g: &u32| groups[g as usize].hash == hash;
        let number = row_number(groups.len());
        match self.table.entry(hash, same, |&g| groups[g as usize].hash) {
            Entry::Occupied(group) => return *group.get(),
            Entry::Vacant(place) => place.insert(number),
        };
        self.add_group(hash, row)
    }

    fn add_group(&mut self, hash: u64, key_row: u32) -> u32 {
        self.groups.push(Group { hash, key_row, rows: SortedRows::new() });
        row_number(self.groups.len() - 1)
    }

    /// Puts a new row, row `theirs` of the run, at its place in its group; if the run repeats a row,
    /// adds its weight to the first.
    fn insert_row(&mut self, layout: &Layout, run: &Run, theirs: u32, row: u32) -> Result<()> {
        let weight = self.weights[row as usize];
        let group = &self.groups[self.group_of[row as usize] as usize];
        let place = self.lower_bound(&group.rows, &run.sort, theirs);
        let may_repeat =
            group.rows.get(place).is_some_and(|r| self.sort.compare(r, &run.sort, theirs).is_eq());
        if may_repeat {
            let rest = layout.rest_of(&run.columns);
            if let Some(twin) = self.find_twin(layout, group, &rest, &run.sort, theirs)? {
                self.weights[row as usize] = 0;
                return self.add(twin, weight);
            }
        }
        let group = &mut self.groups[self.group_of[row as usize] as usize];
        self.list_bytes += group.rows.insert(place, row);
        self.live_rows += 1;
        Ok(())
    }

    /// Joins chunks so that there are few: each row is copied a logarithmic number of times.
    fn merge_chunks(&mut self) -> Result<()> {
        let mut first = self.chunks.len() - 1;
        while first > 0 {
            let later = self.len() - self.chunk_starts[first] as usize;
            let length = (self.chunk_starts[first] - self.chunk_starts[first - 1]) as usize;
            if length >= 2 * later {
                break;
            }
            first -= 1;
        }
        if first + 1 < self.chunks.len() {
            let parts = self.chunks.split_off(first);
            self.chunk_starts.truncate(first + 1);
            let width = parts[0].len();
            let column = |c: usize| {
                let arrays: Vec<_> = parts.iter().map(|chunk| chunk[c].as_ref()).collect();
                arrow::compute::concat(&arrays)
            };
            self.chunks.push((0..width).map(column).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// The live rows, sorted by key hash and sort key.
    pub(super) fn to_run(&self, layout: &Layout) -> Result<Run> {
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_unstable_by_key(|group| group.hash);
        let mut rows = Vec::with_capacity(self.live_rows);
        let mut hashes = Vec::with_capacity(self.live_rows);
        for group in groups {
            rows.extend(group.rows.iter());
            hashes.resize(rows.len(), group.hash);
        }
        let weights = rows.iter().map(|&row| self.weights[row as usize]).collect();
        let mut sort = layout.empty_sort_keys();
        rows.iter().for_each(|&row| sort.push(&self.sort, row));
        let order: Vec<(usize, usize)> = rows.iter().map(|&row| self.locate(row)).collect();
        let columns = interleave_owned(&self.chunks.iter().collect::<Vec<_>>(), &order)?;
        Ok(Run { columns, weights, hashes, sort })
    }

    /// Bytes held in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let columns: usize =
            self.chunks.iter().flatten().map(|column| column.get_array_memory_size()).sum();
        columns
            + self.list_bytes
            + self.weights.capacity() * 8
            + self.group_of.capacity() * 4
            + self.sort.memory_bytes()
            + self.groups.capacity() * size_of::<Group>()
            + self.table.allocation_size()
    }
}

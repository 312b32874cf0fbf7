//! What a small delta costs beside a large state, and what a key with very many rows costs.
//!
//! First table: each operator, its state of 1/100, 1/10 and all of `DELTAIC_BENCH_ROWS` rows, deltas of
//! 1, 100 and 10,000 rows: microseconds of a step (the median of some, half of which take back what
//! the others add), and the factor from the smallest state to the largest. Second table: one key
//! with all rows, which are retracted in random order, a thousand at a time: nanoseconds per row.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use deltaic_batch::{Result, ZBatch};
use deltaic_benches::random::Stream;
use deltaic_ops::{
    Aggregate, AggregateCall, AggregateFunction, AggregateSpec, Comparison, Distinct,
    DynamicFilter, DynamicFilterSpec, Evaluator, FrameBound, Join, JoinKind, JoinSpec, Operator,
    RangeCondition, RangeJoin, RangeJoinSpec, Recursion, RecursionSpec, StepContext, StepInput,
    StepNode, TopK, TopKSpec, Window, WindowCall, WindowFrame, WindowFunction, WindowSpec,
};
use deltaic_state::{Slot, SortKey};

/// Rows of a group in the first table.
const GROUP_ROWS: i64 = 10;
/// Partitions of windows there, which grow with the state.
const PARTITIONS: i64 = 100;
const DELTAS: [usize; 3] = [1, 100, 10_000];
/// Rows that are retracted at a time in the second table.
const BATCH_ROWS: usize = 1_000;

/// An operator under test.
struct Case {
    name: &'static str,
    operator: Arc<dyn Operator>,
    /// Partitions are few and large, instead of groups of ten rows.
    is_window: bool,
    /// Whether the rows of a delta come after all others in their order.
    appends: bool,
    /// What its inputs are beside the first.
    others: Others,
}

/// The inputs of an operator beside the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// The same rows, if there are any.
    Rows,
    /// A bound in the middle of the places, which a delta of rows leaves where it is.
    Bound,
    /// The same bound: a delta moves it by so many rows.
    MovingBound,
    /// Edges from each place to the next, in chains of [`GROUP_ROWS`].
    Edges,
}

impl Others {
    fn load(self, count: usize, rows: &ZBatch, size: usize) -> Result<Vec<ZBatch>> {
        Ok(match self {
            Self::Rows => vec![rows.clone(); count],
            Self::Bound | Self::MovingBound => vec![bound(size / 2, 1)?],
            Self::Edges => {
                let starts =
                    (0..integer(size)).filter(|place| place % GROUP_ROWS != GROUP_ROWS - 1);
                let starts: Vec<i64> = starts.collect();
                let ends = starts.iter().map(|start| start + 1);
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(Int64Array::from(starts.clone())),
                    Arc::new(Int64Array::from_iter_values(ends)),
                ];
                vec![ZBatch::inserts(RecordBatch::try_new(edges(), columns)?)]
            }
        })
    }
}

fn integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn edges() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("from"), field("to")]))
}

fn bounds() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("bound", DataType::Int64, false)]))
}

fn bound(place: usize, weight: i64) -> Result<ZBatch> {
    let place: ArrayRef = Arc::new(Int64Array::from(vec![integer(place)]));
    ZBatch::try_new(RecordBatch::try_new(bounds(), vec![place])?, vec![weight])
}

/// Two columns of a pair of rows are equal.
#[derive(Debug)]
struct SamePlace;

impl Evaluator for SamePlace {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        Ok(Arc::new(arrow::compute::kernels::cmp::eq(batch.column(1), batch.column(4))?))
    }
}

fn main() -> Result<()> {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let rows = if is_test { 10_000 } else { deltaic_benches::rows().max(10_000) };
    let sizes = [rows / 100, rows / 10, rows];
    show(&format!(
        "| operator | rows of state | {} | growth |\n|---|---:|---:|---:|---:|---:|",
        DELTAS.map(|delta| format!("{delta} rows, µs")).join(" | ")
    ));
    for case in cases()? {
        let mut first = None;
        for size in sizes {
            let cost = small_deltas(&case, size)?;
            let first = first.get_or_insert(cost);
            let growth: Vec<f64> =
                (0..DELTAS.len()).map(|i| micros(cost[i]) / micros(first[i])).collect();
            let shown = cost.map(|cost| format!("{:.1}", micros(cost))).join(" | ");
            let growth = growth.iter().map(|factor| format!("{factor:.1}")).collect::<Vec<_>>();
            show(&format!("| {} | {size} | {shown} | {} |", case.name, growth.join(" / ")));
        }
    }
    show(
        "\n| one key | rows | load, ns per row | retracted at random, ns per row |\n|---|---:|---:|---:|",
    );
    let is_keyed = |case: &Case| !case.appends && case.others == Others::Rows;
    for case in cases()?.into_iter().filter(is_keyed) {
        for size in [rows / 100, rows / 10] {
            let (load, retract) = one_key(&case, size)?;
            show(&format!("| {} | {size} | {load:.0} | {retract:.0} |", case.name));
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is the benchmark's output")]
fn show(line: &str) {
    println!("{line}");
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Key, place in an order, value.
fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("key"), field("at"), field("value")]))
}

fn cases() -> Result<Vec<Case>> {
    let call = |function, input, distinct| AggregateCall {
        function,
        distinct,
        input,
        filter: None,
        output: Field::new("call", DataType::Int64, true),
    };
    let aggregate = |name, calls| -> Result<Case> {
        let spec = AggregateSpec { input: schema(), keys: vec![0], calls };
        let operator = Arc::new(Aggregate::try_new(spec)?);
        Ok(Case { name, operator, is_window: false, appends: false, others: Others::Rows })
    };
    let join = |name, kind: JoinKind| -> Result<Case> {
        let columns = kind.columns(&schema(), &schema());
        let both = [schema(), schema()];
        let all: Vec<_> = both.iter().flat_map(|side| side.fields().iter().cloned()).collect();
        let fields = columns.iter().map(|&i| all[i].as_ref().clone().with_nullable(true));
        let output = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (left, right, on) = (schema(), schema(), vec![(0, 0)]);
        let operator = Arc::new(Join::try_new(JoinSpec {
            left,
            right,
            kind,
            on,
            null_equals_null: false,
            residual: None,
            columns,
            output,
            detail: String::new(),
        })?);
        Ok(Case { name, operator, is_window: false, appends: false, others: Others::Rows })
    };
    let order = vec![SortKey { column: 1, descending: false, nulls_first: false }];
    let window = |name, function, input, start, appends| -> Result<Case> {
        let frame = WindowFrame { start, end: FrameBound::Rows(0), peers: false };
        let data_type = match function {
            WindowFunction::RowNumber => DataType::UInt64,
            _ => DataType::Int64,
        };
        let output = Field::new("call", data_type, true);
        let calls = vec![WindowCall { function, input, filter: None, frame, output }];
        let spec = WindowSpec { input: schema(), partition: vec![0], order: order.clone(), calls };
        let operator = Arc::new(Window::try_new(spec)?);
        Ok(Case { name, operator, is_window: true, appends, others: Others::Rows })
    };
    let top = TopK::try_new(TopKSpec {
        input: schema(),
        partition: vec![0],
        order: order.clone(),
        offset: 0,
        limit: 3,
        number: None,
    })?;
    let bounded = |name, others| -> Result<Case> {
        let operator = Arc::new(DynamicFilter::try_new(DynamicFilterSpec {
            input: schema(),
            value: 1,
            comparison: Comparison::Less,
            bound: bounds(),
            detail: String::new(),
        })?);
        Ok(Case { name, operator, is_window: false, appends: false, others })
    };
    let range = |comparison| RangeCondition { left: 1, comparison, right: 1 };
    let range_join = RangeJoin::try_new(RangeJoinSpec {
        left: schema(),
        right: schema(),
        on: Vec::new(),
        null_equals_null: false,
        values: (1, 1),
        ranges: vec![range(Comparison::GreaterOrEqual), range(Comparison::LessOrEqual)],
        condition: Arc::new(SamePlace),
        detail: String::new(),
    })?;
    let next = Join::try_new(JoinSpec {
        left: schema(),
        right: edges(),
        kind: JoinKind::Inner,
        on: vec![(1, 0)],
        null_equals_null: false,
        residual: None,
        columns: vec![0, 4, 2],
        output: schema(),
        detail: String::new(),
    })?;
    let recursion = Recursion::try_new(RecursionSpec {
        schema: schema(),
        outer: vec![edges()],
        step: vec![StepNode {
            operator: Arc::new(next),
            inputs: vec![StepInput::Work, StepInput::Outer(0)],
        }],
        distinct: true,
        detail: String::new(),
    })?;
    let sum = || WindowFunction::Aggregate(AggregateFunction::Sum);
    use AggregateFunction as A;
    Ok(vec![
        aggregate(
            "count, sum",
            vec![call(A::CountStar, None, false), call(A::Sum, Some(2), false)],
        )?,
        aggregate("min, max", vec![call(A::Min, Some(2), false), call(A::Max, Some(2), false)])?,
        aggregate("count distinct", vec![call(A::Count, Some(2), true)])?,
        Case {
            name: "distinct",
            operator: Arc::new(Distinct::try_new(schema())?),
            is_window: false,
            appends: false,
            others: Others::Rows,
        },
        join("inner join", JoinKind::Inner)?,
        join("left join", JoinKind::Left)?,
        join("anti join", JoinKind::LeftAnti)?,
        Case {
            name: "top 3",
            operator: Arc::new(top),
            is_window: false,
            appends: false,
            others: Others::Rows,
        },
        bounded("dynamic filter", Others::Bound)?,
        bounded("dynamic filter, bound moves by", Others::MovingBound)?,
        Case {
            name: "range join",
            operator: Arc::new(range_join),
            is_window: false,
            appends: false,
            others: Others::Rows,
        },
        Case {
            name: "recursion, chains of 10",
            operator: Arc::new(recursion),
            is_window: false,
            appends: false,
            others: Others::Edges,
        },
        window(
            "lag",
            WindowFunction::Offset { rows: -1, default: None },
            Some(2),
            FrameBound::Rows(0),
            false,
        )?,
        window("sum of 10 rows", sum(), Some(2), FrameBound::Rows(-9), false)?,
        window(
            "row number, at the end",
            WindowFunction::RowNumber,
            None,
            FrameBound::Rows(0),
            true,
        )?,
        window("running sum, at the end", sum(), Some(2), FrameBound::Unbounded, true)?,
    ])
}

/// Some rows of a table: row `i` is in place `i`.
fn rows(
    numbers: impl IntoIterator<Item = usize>,
    key: impl Fn(usize) -> i64,
    weight: i64,
) -> Result<ZBatch> {
    let numbers: Vec<usize> = numbers.into_iter().collect();
    let column = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(numbers.iter().map(|&i| value(i))))
    };
    let value = |i: usize| i64::try_from(Stream(3).number(i) >> 40).unwrap_or(0);
    let place = |i: usize| i64::try_from(i).unwrap_or(0);
    let columns = vec![column(&key), column(&place), column(&value)];
    let batch = RecordBatch::try_new(schema(), columns)?;
    ZBatch::try_new(batch, vec![weight; numbers.len()])
}

struct Run<'a> {
    case: &'a Case,
    state: Vec<Slot>,
    epoch: u64,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case) -> Result<Self> {
        let state = case.operator.spec().slots.iter().map(Slot::try_new).collect::<Result<_>>()?;
        Ok(Self { case, state, epoch: 0 })
    }

    /// The time of a step whose delta goes to the first input.
    fn step(&mut self, delta: ZBatch) -> Result<Duration> {
        let mut inputs = vec![delta];
        let specs = self.case.operator.spec().inputs.iter().skip(1);
        inputs.extend(specs.map(|input| ZBatch::empty(input.schema.clone())));
        self.run(inputs)
    }

    /// As [`Self::step`], to all inputs.
    fn run(&mut self, inputs: Vec<ZBatch>) -> Result<Duration> {
        let mut out: Vec<ZBatch> = Vec::new();
        let cx = StepContext { epoch: self.epoch, shard: 0, shards: 1 };
        self.epoch += 1;
        let start = Instant::now();
        self.case.operator.step(&inputs, &mut self.state, &mut out, &cx)?;
        std::hint::black_box(&out);
        Ok(start.elapsed())
    }

    fn load(&mut self, rows: ZBatch) -> Result<Duration> {
        let count = self.case.operator.spec().inputs.len() - 1;
        let mut inputs = self.case.others.load(count, &rows, rows.num_rows())?;
        inputs.insert(0, rows);
        self.run(inputs)
    }

    /// Moves the bound.
    fn move_bound(&mut self, from: usize, to: usize) -> Result<Duration> {
        let moves = ZBatch::concat(&bounds(), &[bound(from, -1)?, bound(to, 1)?])?;
        self.run(vec![ZBatch::empty(schema()), moves])
    }
}

/// Median time of a step for each size of delta.
fn small_deltas(case: &Case, size: usize) -> Result<[Duration; DELTAS.len()]> {
    let groups = i64::try_from(size).unwrap_or(i64::MAX) / GROUP_ROWS;
    let keys = if case.is_window { PARTITIONS } else { groups };
    let of = |i: usize| i64::try_from(i).unwrap_or(0) % keys;
    let mut run = Run::new(case)?;
    run.load(rows(0..size, of, 1)?)?;
    let mut medians = [Duration::ZERO; DELTAS.len()];
    for (median, delta) in medians.iter_mut().zip(DELTAS) {
        let mut times = Vec::new();
        let repetitions = if delta < 10_000 { 31 } else { 7 };
        for repetition in 0..repetitions {
            // Rows that are there are taken out and put back, or new ones come and go.
            let start = if case.appends {
                size
            } else {
                let many = u64::try_from(size.saturating_sub(delta)).unwrap_or(0).max(1);
                usize::try_from(Stream(5).number(repetition) % many).unwrap_or(0)
            };
            if case.others == Others::MovingBound {
                times.push(run.move_bound(size / 2, (size / 2 + delta).min(size))?);
                times.push(run.move_bound((size / 2 + delta).min(size), size / 2)?);
                continue;
            }
            let range = start..(start + delta).min(if case.appends { usize::MAX } else { size });
            // Spread over the state.
            let spread = |i: usize| if case.appends { i } else { i * 7_919 % size };
            let picked = |weight| rows(range.clone().map(spread), of, weight);
            let (there, back) = if case.appends { (1, -1) } else { (-1, 1) };
            times.push(run.step(picked(there)?)?);
            times.push(run.step(picked(back)?)?);
        }
        times.sort();
        *median = times[times.len() / 2];
    }
    Ok(medians)
}

/// Nanoseconds per row of loading one key with so many rows, and of retracting them in random order.
fn one_key(case: &Case, size: usize) -> Result<(f64, f64)> {
    let mut run = Run::new(case)?;
    let delta = rows(0..size, |_| 7, 1)?;
    let mut inputs = vec![delta];
    // One partner on the other side of a join.
    let others = case.operator.spec().inputs.len() - 1;
    inputs.extend((0..others).map(|_| rows(0..1, |_| 7, 1)).collect::<Result<Vec<_>>>()?);
    let load = run.run(inputs)?;
    let order = Stream(11).order(size);
    let mut spent = Duration::ZERO;
    for batch in order.chunks(BATCH_ROWS) {
        spent += run.step(rows(batch.iter().copied(), |_| 7, -1)?)?;
    }
    let per_row =
        |time: Duration| time.as_secs_f64() * 1e9 / f64::from(u32::try_from(size).unwrap_or(1));
    Ok((per_row(load), per_row(spent)))
}

//! Variance, covariance, correlation and regression as functions of exact sums.
//!
//! DataFusion updates a mean and a sum of squares row by row, so that the result depends on the order
//! of the rows, and no row can be taken back. Here an aggregate computes `n`, `Σx`, `Σx²` and `Σxy`
//! without rounding, each as the nearest float and what is left; a product `x·y` is a float and its
//! rounding error (by fused multiply-add). A projection above it then computes, in arithmetic of twice
//! the digits (Dekker, 1971), what was asked for: the same in every order, and retractable.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Case, ScalarFunction,
};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Projection,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::float_sum;

/// The rule.
#[derive(Debug)]
pub(super) struct Statistics;

impl OptimizerRule for Statistics {
    fn name(&self) -> &'static str {
        "statistics"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Aggregate(node)
                if node.aggr_expr.iter().any(|expr| call_of(expr).is_some()) =>
            {
                aggregate(node)
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

/// What is computed from the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Statistic {
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    CovarPop,
    CovarSamp,
    Corr,
    Slope,
    Intercept,
    R2,
    AvgX,
    AvgY,
    Sxx,
    Syy,
    Sxy,
}

impl Statistic {
    fn of(function: &str) -> Option<Self> {
        Some(match function {
            "var_pop" => Self::VarPop,
            "var" => Self::VarSamp,
            "stddev_pop" => Self::StddevPop,
            "stddev" => Self::StddevSamp,
            "covar_pop" => Self::CovarPop,
            "covar_samp" => Self::CovarSamp,
            "corr" => Self::Corr,
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            "regr_r2" => Self::R2,
            "regr_avgx" => Self::AvgX,
            "regr_avgy" => Self::AvgY,
            "regr_sxx" => Self::Sxx,
            "regr_syy" => Self::Syy,
            "regr_sxy" => Self::Sxy,
            _ => return None,
        })
    }

    /// One argument, or a pair of which `x` is the second one.
    fn is_of_one(self) -> bool {
        matches!(self, Self::VarPop | Self::VarSamp | Self::StddevPop | Self::StddevSamp)
    }
}

/// A call that is computed from sums.
fn call_of(expr: &Expr) -> Option<(Statistic, &AggregateFunctionParams)> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let statistic = Statistic::of(func.name())?;
            let arguments = if statistic.is_of_one() { 1 } else { 2 };
            let is_plain = !params.distinct && params.order_by.is_empty();
            (is_plain && params.args.len() == arguments).then_some((statistic, params))
        }
        _ => None,
    }
}

fn aggregate(node: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = node.input.schema().clone();
    let first = node.schema.fields().len() - node.aggr_expr.len();
    // The calls of the new aggregate, each once, and the results in terms of them.
    let mut calls: Vec<Expr> = Vec::new();
    let mut results: Vec<Column> = Vec::new();
    let mut place = |call: Expr| {
        calls.iter().position(|other| *other == call).unwrap_or_else(|| {
            calls.push(call);
            calls.len() - 1
        })
    };
    for expr in &node.aggr_expr {
        let Some((statistic, params)) = call_of(expr) else {
            results.push(Column::Same(place(expr.clone())));
            continue;
        };
        let mut args = Vec::with_capacity(2);
        for arg in &params.args {
            args.push(match arg.get_type(&schema)? {
                DataType::Float64 => arg.clone(),
                _ => Expr::Cast(Cast::new(Box::new(arg.clone()), DataType::Float64)),
            });
        }
        let sums = sums(args, params.filter.as_deref());
        results.push(Column::Of(statistic, sums.into_iter().map(&mut place).collect()));
    }
    let output = node.schema.clone();
    // Casts do not show in names, so that two calls may have the same.
    let named = calls.into_iter().enumerate().map(|(at, call)| match call {
        Expr::Alias(_) => call,
        other => other.alias(format!("__part_{at}")),
    });
    let changed = Aggregate::try_new(node.input, node.group_expr, named.collect())?;
    let columns = changed.schema.columns();
    let mut exprs: Vec<Expr> = columns[..first].iter().cloned().map(Expr::Column).collect();
    let column = |at: &usize| Expr::Column(columns[first + at].clone());
    for (result, field) in results.iter().zip(&output.fields()[first..]) {
        let expr = match result {
            Column::Same(at) => column(at),
            Column::Of(statistic, sums) => {
                let args = sums.iter().map(column).collect();
                Expr::ScalarFunction(ScalarFunction::new_udf(Finish::function(*statistic), args))
            }
        };
        exprs.push(expr.alias(field.name()));
    }
    let plan = Arc::new(LogicalPlan::Aggregate(changed));
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(exprs, plan)?)))
}

/// A column of the result: a call as it was, or a function of some sums.
enum Column {
    Same(usize),
    Of(Statistic, Vec<usize>),
}

/// The sums that a statistic is made of: the count, and then for each of `x`, `y`, `x²`, `y²`, `xy` the
/// parts that add up to it.
fn sums(args: Vec<Expr>, filter: Option<&Expr>) -> Vec<Expr> {
    let call = |function: &Arc<AggregateUDF>, arg: Expr| {
        let filter = filter.cloned().map(Box::new);
        let (order_by, nulls) = (Vec::new(), None);
        let call =
            AggregateFunction::new_udf(function.clone(), vec![arg], false, filter, order_by, nulls);
        Expr::AggregateFunction(call)
    };
    let sum = sum_udaf();
    let whole = |arg: Expr| vec![call(&sum, arg.clone()), call(&float_sum::REST, arg)];
    let product = |a: &Expr, b: &Expr| {
        let rest = ScalarFunction::new_udf(ProductRest::function(), vec![a.clone(), b.clone()]);
        let mut parts = whole(a.clone() * b.clone());
        parts.push(call(&sum, Expr::ScalarFunction(rest)));
        parts
    };
    let mut args = args.into_iter();
    let (Some(one), other) = (args.next(), args.next()) else { return Vec::new() };
    let Some(other) = other else {
        let mut parts = vec![call(&count_udaf(), one.clone())];
        parts.extend(whole(one.clone()));
        parts.extend(product(&one, &one));
        return parts;
    };
    // Rows count where both are values.
    let (y, x) = (where_known(one.clone(), &other), where_known(other, &one));
    let mut parts = vec![call(&count_udaf(), x.clone())];
    parts.extend(whole(x.clone()));
    parts.extend(whole(y.clone()));
    parts.extend(product(&x, &x));
    parts.extend(product(&y, &y));
    parts.extend(product(&x, &y));
    parts
}

/// A value where another one is no NULL.
fn where_known(value: Expr, other: &Expr) -> Expr {
    let when = Box::new(other.clone().is_not_null());
    Expr::Case(Case { expr: None, when_then_expr: vec![(when, Box::new(value))], else_expr: None })
}

/// A number as the sum of a float and a much smaller one.
#[derive(Debug, Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn new(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self(sum, low - (sum - high))
    }

    fn times(self, other: Self) -> Self {
        let high = self.0 * other.0;
        let low = self.0.mul_add(other.0, -high);
        Self::new(high, low + (self.0 * other.1 + self.1 * other.0))
    }

    fn over(self, divisor: f64) -> Self {
        let high = self.0 / divisor;
        let low = (-high).mul_add(divisor, self.0) + self.1;
        Self::new(high, low / divisor)
    }

    fn minus(self, other: Self) -> Self {
        // The exact difference of the large parts, and its error (Knuth).
        let high = self.0 - other.0;
        let virtual_other = self.0 - high;
        let error = (self.0 - (high + virtual_other)) + (virtual_other - other.0);
        Self::new(high, error + (self.1 - other.1))
    }

    fn value(self) -> f64 {
        self.0 + self.1
    }
}

/// Computes a statistic from its sums.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Finish {
    statistic: Statistic,
    signature: Signature,
}

impl Finish {
    fn function(statistic: Statistic) -> Arc<ScalarUDF> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Self { statistic, signature }))
    }

    /// `None` for NULL. `n` is positive.
    fn value(&self, n: f64, parts: &[f64]) -> Option<f64> {
        use Statistic as S;
        // Σab − Σa·Σb / n
        let centred = |product: &[f64], a: Double, b: Double| {
            let sum = Double::new(product[0], product[1] + product[2]);
            sum.minus(a.times(b).over(n)).value()
        };
        // Rounding may leave less than nothing.
        let square = |product: &[f64], a: Double| {
            let value = centred(product, a, a);
            if value < 0.0 { 0.0 } else { value }
        };
        let sample = |value: f64| (n > 1.0).then(|| value / (n - 1.0));
        let x = Double::new(parts[0], parts[1]);
        if self.statistic.is_of_one() {
            let sxx = square(&parts[2..5], x);
            return match self.statistic {
                S::VarPop => Some(sxx / n),
                S::StddevPop => Some((sxx / n).sqrt()),
                S::VarSamp => sample(sxx),
                _ => sample(sxx).map(f64::sqrt),
            };
        }
        let y = Double::new(parts[2], parts[3]);
        let (sxx, syy) = (square(&parts[4..7], x), square(&parts[7..10], y));
        let sxy = centred(&parts[10..13], x, y);
        let (x_mean, y_mean) = (x.over(n).value(), y.over(n).value());
        let slope = || (n > 1.0 && sxx != 0.0).then(|| sxy / sxx);
        let spread = n > 1.0 && sxx != 0.0 && syy != 0.0;
        match self.statistic {
            S::CovarPop => Some(sxy / n),
            S::CovarSamp => sample(sxy),
            S::Corr if sxy.is_nan() => Some(sxy),
            S::Corr => spread.then(|| sxy / sxx.sqrt() / syy.sqrt()),
            S::Slope => slope(),
            S::Intercept => slope().map(|slope| y_mean - slope * x_mean),
            S::R2 => spread.then(|| (sxy * sxy) / (sxx * syy)),
            S::AvgX => Some(x_mean),
            S::AvgY => Some(y_mean),
            S::Sxx => Some(sxx),
            S::Syy => Some(syy),
            _ => Some(sxy),
        }
    }
}

impl ScalarUDFImpl for Finish {
    fn name(&self) -> &'static str {
        use Statistic as S;
        match self.statistic {
            S::VarPop => "var_pop_of",
            S::VarSamp => "var_samp_of",
            S::StddevPop => "stddev_pop_of",
            S::StddevSamp => "stddev_samp_of",
            S::CovarPop => "covar_pop_of",
            S::CovarSamp => "covar_samp_of",
            S::Corr => "corr_of",
            S::Slope => "regr_slope_of",
            S::Intercept => "regr_intercept_of",
            S::R2 => "regr_r2_of",
            S::AvgX => "regr_avgx_of",
            S::AvgY => "regr_avgy_of",
            S::Sxx => "regr_sxx_of",
            S::Syy => "regr_syy_of",
            S::Sxy => "regr_sxy_of",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let wanted = if self.statistic.is_of_one() { 6 } else { 14 };
        let (Some(counts), true) = (
            arrays.first().and_then(|counts| counts.as_primitive_opt::<Int64Type>()),
            arrays.len() == wanted,
        ) else {
            return plan_err!("{} of other sums than it needs", self.name());
        };
        let mut sums = Vec::with_capacity(wanted);
        for array in &arrays[1..] {
            match array.as_primitive_opt::<Float64Type>() {
                Some(sum) => sums.push(sum),
                None => return plan_err!("{} of {}", self.name(), array.data_type()),
            }
        }
        let mut parts = vec![0.0; sums.len()];
        let value = |row: usize| {
            let count = if counts.is_null(row) { 0 } else { counts.value(row) };
            if count <= 0 {
                return None;
            }
            for (part, sum) in parts.iter_mut().zip(&sums) {
                *part = if sum.is_null(row) { 0.0 } else { sum.value(row) };
            }
            #[expect(clippy::cast_precision_loss, reason = "no group has 2^53 rows")]
            self.value(count as f64, &parts)
        };
        let values: Float64Array = (0..counts.len()).map(value).collect();
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}

/// `product_rest(x, y)`: what `x * y` loses by rounding; 0 where that is no number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ProductRest {
    signature: Signature,
}

impl ProductRest {
    fn function() -> Arc<ScalarUDF> {
        static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
            let types = vec![DataType::Float64, DataType::Float64];
            let signature = Signature::exact(types, Volatility::Immutable);
            Arc::new(ScalarUDF::new_from_impl(ProductRest { signature }))
        });
        FUNCTION.clone()
    }
}

impl ScalarUDFImpl for ProductRest {
    fn name(&self) -> &'static str {
        "product_rest"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else { return plan_err!("two factors") };
        let (Some(left), Some(right)) =
            (left.as_primitive_opt::<Float64Type>(), right.as_primitive_opt::<Float64Type>())
        else {
            return plan_err!("two floats");
        };
        let rest = |x: f64, y: f64| {
            let rest = x.mul_add(y, -(x * y));
            if rest.is_finite() { rest } else { 0.0 }
        };
        let values = arrow::compute::binary::<_, _, _, Float64Type>(left, right, rest)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
            false => ColumnarValue::Array(Arc::new(values)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(values: &[(f64, f64)]) -> Vec<f64> {
        use deltaic_state::ExactSum;
        let whole = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let mut sum = ExactSum::default();
            values.iter().for_each(|pair| sum.add(of(pair), 1));
            let high = sum.value();
            sum.add(high, -1);
            [high, sum.value()]
        };
        let rest = |a: f64, b: f64| a.mul_add(b, -(a * b));
        let product = |a: &dyn Fn(&(f64, f64)) -> f64, b: &dyn Fn(&(f64, f64)) -> f64| {
            let [high, low] = whole(&|pair| a(pair) * b(pair));
            [high, low, whole(&|pair| rest(a(pair), b(pair)))[0]]
        };
        let (x, y) = (|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1);
        let mut parts = whole(&x).to_vec();
        parts.extend(whole(&y));
        parts.extend(product(&x, &x));
        parts.extend(product(&y, &y));
        parts.extend(product(&x, &y));
        parts
    }

    fn finish(statistic: Statistic, values: &[(f64, f64)]) -> Option<f64> {
        let signature = Signature::variadic_any(Volatility::Immutable);
        let all = parts(values);
        let all = match statistic.is_of_one() {
            true => [&all[..2], &all[4..7]].concat(),
            false => all,
        };
        Finish { statistic, signature }.value(values.len() as f64, &all)
    }

    #[test]
    fn statistics_of_numbers_far_from_zero() {
        // The naive formula has no right digit here.
        let values: Vec<(f64, f64)> =
            (0..5).map(|i| (1e9 + f64::from(i), 2e9 - 3.0 * f64::from(i))).collect();
        assert_eq!(finish(Statistic::VarPop, &values), Some(2.0));
        assert_eq!(finish(Statistic::VarSamp, &values), Some(2.5));
        assert_eq!(finish(Statistic::StddevSamp, &values), Some(2.5_f64.sqrt()));
        assert_eq!(finish(Statistic::CovarPop, &values), Some(-6.0));
        assert_eq!(finish(Statistic::Slope, &values), Some(-3.0));
        assert_eq!(finish(Statistic::Intercept, &values), Some(2e9 + 3e9));
        assert!((finish(Statistic::Corr, &values).unwrap() + 1.0).abs() < 1e-15);
        assert_eq!(finish(Statistic::Sxx, &values), Some(10.0));
        assert_eq!(finish(Statistic::VarSamp, &values[..1]), None);
        assert_eq!(finish(Statistic::VarPop, &values[..1]), Some(0.0));
        assert_eq!(finish(Statistic::Corr, &values[..1]), None);
        assert!(finish(Statistic::Corr, &[(f64::NAN, 1.0)]).unwrap().is_nan());
    }
}

//! Functions beyond DataFusion's: Spark's, wherever DataFusion has none of that name.

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;

/// Adds Spark's functions; none replaces one of DataFusion's.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    for function in datafusion_spark::all_default_scalar_functions() {
        if !state.scalar_functions().contains_key(function.name())
            && !function.aliases().iter().any(|name| state.scalar_functions().contains_key(name))
        {
            state.register_udf(function)?;
        }
    }
    for function in datafusion_spark::all_default_aggregate_functions() {
        if !state.aggregate_functions().contains_key(function.name())
            && !function.aliases().iter().any(|name| state.aggregate_functions().contains_key(name))
        {
            state.register_udaf(function)?;
        }
    }
    for function in datafusion_spark::all_default_window_functions() {
        if !state.window_functions().contains_key(function.name()) {
            state.register_udwf(function)?;
        }
    }
    Ok(())
}

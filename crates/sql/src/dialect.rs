//! The SQL dialect of queries: what `sqlparser` calls generic, plus what Databricks and Spark add.
//! Both `"x"` and `` `x` `` quote names; strings have no backslash escapes, so that regular
//! expressions and Windows paths are written as they are.

use std::any::TypeId;

use sqlparser::dialect::{Dialect, GenericDialect};

/// See the module.
#[derive(Debug, Default, Clone, Copy)]
pub struct PipelineDialect;

/// Answers `true` for each named question.
macro_rules! accepts {
    ($($question:ident),* $(,)?) => {
        $(fn $question(&self) -> bool { true })*
    };
}

impl Dialect for PipelineDialect {
    /// Passes for the generic dialect where the parser asks for a dialect by type.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_'
    }

    accepts!(
        allow_extract_custom,
        allow_extract_single_quotes,
        support_map_literal_syntax,
        supports_array_typedef_with_brackets,
        supports_bang_not_operator,
        supports_bitwise_shift_operators,
        supports_boolean_literals,
        supports_cte_without_as,
        supports_dictionary_syntax,
        supports_extract_comma_syntax,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_lambda_functions,
        supports_left_associative_joins_without_parens,
        supports_nested_comments,
        supports_notnull_operator,
        supports_named_fn_args_with_rarrow_operator,
        supports_order_by_all,
        supports_parens_around_table_factor,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_replace,
        supports_select_wildcard_rename,
        supports_struct_literal,
        supports_subquery_as_function_arg,
        supports_table_versioning,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
        supports_within_after_array_aggregation,
    );
}

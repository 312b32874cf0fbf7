//! Near names: what the user may have meant.

/// Up to three of `names` that resemble `wanted`, most alike first.
pub(crate) fn near_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::near_names;

    #[test]
    fn a_typo_finds_the_name() {
        let names = ["customers", "orders", "order_items"];
        assert_eq!(near_names("odrers", names.into_iter()), ["orders"]);
        assert!(near_names("xyz", names.into_iter()).is_empty());
    }
}

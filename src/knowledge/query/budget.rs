//! Token budgets: how many whole items of a list fit.

/// Counts the o200k tokens of a text.
pub type CountTokens = dyn Fn(&str) -> usize + Send + Sync;

/// How many `items` fit into `budget` tokens, as a prefix: the line of each with the newline that follows it.
///
/// Lines are JSON objects, so a newline between two of them ends a token: the sum over lines is the count of the
/// joined text.
pub fn fitting_prefix<T>(
    items: &[T],
    budget: usize,
    line: impl Fn(&T) -> String,
    tokens: &CountTokens,
) -> usize {
    let mut used = 0_usize;
    for (index, item) in items.iter().enumerate() {
        used = used.saturating_add(line_tokens(&line(item), tokens));
        if used > budget {
            return index;
        }
    }
    items.len()
}

/// Tokens of a line and its newline. A closing newline may join the last token, and then the line alone may need one
/// more: count the larger.
pub fn line_tokens(line: &str, tokens: &CountTokens) -> usize {
    if line.is_empty() {
        return 1;
    }
    let mut ended = String::with_capacity(line.len() + 1);
    ended.push_str(line);
    ended.push('\n');
    tokens(&ended) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn prefix_of_whole_lines_fits_budget() {
        let lines: Vec<String> = ["a b", "c", "d e f", "g"].map(str::to_owned).to_vec();
        // Each line costs one more than its words.
        for (budget, kept) in [(0, 0), (2, 0), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (11, 4), (100, 4)] {
            assert_eq!(fitting_prefix(&lines, budget, String::clone, &words), kept, "{budget}");
        }
        assert_eq!(fitting_prefix(&[], 0, String::clone, &words), 0);
    }
}

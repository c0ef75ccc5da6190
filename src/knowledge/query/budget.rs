//! Token budgets: the number of complete items of a list that fit.

/// Counts the o200k tokens of a text.
pub type CountTokens = dyn Fn(&str) -> usize + Send + Sync;

/// The number of `items`, as a prefix, that fit into `budget` tokens, and their tokens: the line of each with the
/// newline that follows it.
///
/// Lines are JSON objects, so a newline between two of them ends a token: the sum over lines is the count of the
/// joined text.
pub fn fitting_prefix<T>(
    items: &[T],
    budget: usize,
    line: impl Fn(&T) -> String,
    tokens: &CountTokens,
) -> (usize, usize) {
    let mut used = 0_usize;
    for (index, item) in items.iter().enumerate() {
        let more = line_tokens(&line(item), tokens);
        if used.saturating_add(more) > budget {
            return (index, used);
        }
        used += more;
    }
    (items.len(), used)
}

/// Tokens of a line and its newline. A closing newline may join the last token, so that the line alone needs
/// one token more. The larger number counts.
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
        // Each line costs one token more than its words.
        for (budget, kept, used) in [
            (0, 0, 0),
            (2, 0, 0),
            (3, 1, 3),
            (4, 1, 3),
            (5, 2, 5),
            (8, 2, 5),
            (9, 3, 9),
            (11, 4, 11),
            (100, 4, 11),
        ] {
            assert_eq!(fitting_prefix(&lines, budget, String::clone, &words), (kept, used), "{budget}");
        }
        assert_eq!(fitting_prefix(&[], 0, String::clone, &words), (0, 0));
    }
}

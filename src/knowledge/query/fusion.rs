//! Joins several ranked lists into one: by reciprocal rank fusion, or in turn.

use std::collections::HashMap;
use std::hash::Hash;

/// The constant of reciprocal rank fusion: the larger it is, the less the first places count.
const RANK_CONSTANT: f64 = 60.0;

/// Joins ranked lists by the sum of `weight / (60 + rank)`. Ties are ordered by the key, so that equal input gives
/// equal output.
pub fn fuse<K: Clone + Eq + Hash + Ord>(lists: &[(&[K], f64)], limit: usize) -> Vec<K> {
    let mut lists = lists.iter().filter(|(list, weight)| !list.is_empty() && *weight > 0.0);
    let (first, second) = (lists.next(), lists.next());
    if let (Some((only, _)), None) = (first, second) {
        return round_robin(&[only], limit);
    }
    let mut scores: HashMap<&K, f64> = HashMap::new();
    for (list, weight) in first.into_iter().chain(second).chain(lists) {
        for (rank, key) in list.iter().enumerate() {
            *scores.entry(key).or_default() += weight / (RANK_CONSTANT + rank as f64 + 1.0);
        }
    }
    let mut ranked: Vec<(&K, f64)> = scores.into_iter().collect();
    ranked.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then_with(|| a.cmp(b)));
    ranked.into_iter().take(limit).map(|(key, _)| key.clone()).collect()
}

/// Joins lists by adding one item of each in turn. Items that were added before are skipped.
pub fn round_robin<K: Clone + Eq + Hash>(lists: &[&[K]], limit: usize) -> Vec<K> {
    let longest = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    let mut seen = std::collections::HashSet::new();
    let mut joined = Vec::new();
    for position in 0..longest {
        for list in lists {
            if joined.len() == limit {
                return joined;
            }
            if let Some(key) = list.get(position)
                && seen.insert(key)
            {
                joined.push(key.clone());
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fused_list_prefers_items_of_both_lists() {
        assert_eq!(fuse(&[(&[1, 2, 3], 1.0), (&[3, 4], 1.0)], 10), [3, 1, 2, 4]);
        assert_eq!(fuse(&[(&[1, 2, 3], 1.0), (&[], 1.0)], 2), [1, 2]);
        assert_eq!(fuse(&[(&[1, 2], 1.0), (&[2, 1], 0.0)], 2), [1, 2]);
        assert_eq!(fuse(&[(&[9], 1.0), (&[4], 1.0)], 2), [4, 9], "ties are ordered by key");
    }

    #[test]
    fn lists_take_turns_without_duplicates() {
        assert_eq!(round_robin(&[&[1, 2, 3], &[2, 5], &[7]], 10), [1, 2, 7, 5, 3]);
        assert_eq!(round_robin(&[&[1, 2, 3], &[2, 5]], 2), [1, 2]);
        assert!(round_robin::<u8>(&[], 2).is_empty());
    }

    proptest! {
        #[test]
        fn joined_lists_have_each_item_once(a in proptest::collection::vec(0..30_u8, 0..20), b in proptest::collection::vec(0..30_u8, 0..20)) {
            for joined in [fuse(&[(&a, 1.0), (&b, 0.5)], 100), round_robin(&[&a, &b], 100)] {
                let mut unique = joined.clone();
                unique.sort_unstable();
                unique.dedup();
                prop_assert_eq!(unique.len(), joined.len());
                prop_assert!(a.iter().chain(&b).all(|item| joined.contains(item)));
            }
        }
    }
}

//! Selects the chunks of the found entities or relations for the context.

use std::collections::HashMap;

use crate::types::ChunkId;
use types::knowledge::ChunkPick;

/// The chunks of each owner: a chunk belongs to the first owner that names it. Within an owner, chunks that more
/// owners name come first; ties keep the order of the list.
pub fn assign_chunks(lists: Vec<Vec<ChunkId>>) -> Vec<Vec<ChunkId>> {
    let mut counts: HashMap<ChunkId, usize> = HashMap::new();
    let mut assigned: Vec<Vec<ChunkId>> = Vec::with_capacity(lists.len());
    for list in lists {
        let mut own = Vec::new();
        for id in list {
            let count = counts.entry(id.clone()).or_insert(0);
            *count += 1;
            if *count == 1 {
                own.push(id);
            }
        }
        assigned.push(own);
    }
    for own in &mut assigned {
        own.sort_by_key(|id| std::cmp::Reverse(counts[id]));
    }
    assigned
}

/// Chooses chunks. `similarities` belongs to the flattened `assigned`; if it has no value at all, weight decides.
pub fn pick_chunks(
    assigned: &[Vec<ChunkId>],
    pick: ChunkPick,
    per_owner: usize,
    similarities: &[Option<f32>],
) -> Vec<ChunkId> {
    if pick == ChunkPick::Vector && similarities.iter().any(Option::is_some) {
        return pick_by_similarity(assigned, per_owner, similarities);
    }
    pick_by_weight(assigned, per_owner)
}

/// Chooses half of the maximum of all owners together: those most similar to the query.
fn pick_by_similarity(
    assigned: &[Vec<ChunkId>],
    per_owner: usize,
    similarities: &[Option<f32>],
) -> Vec<ChunkId> {
    let limit = per_owner * assigned.len() / 2;
    let ids = assigned.iter().flatten();
    let scored = ids.zip(similarities).filter_map(|(id, score)| score.map(|score| (id, score)));
    let mut scored: Vec<(&ChunkId, f32)> = scored.collect();
    scored.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then_with(|| a.cmp(b)));
    scored.into_iter().take(limit).map(|(id, _)| id.clone()).collect()
}

/// A quota that falls from `per_owner` for the first owner to 1 for the last one. Unused quota is given to the first
/// owners that have more.
fn pick_by_weight(assigned: &[Vec<ChunkId>], per_owner: usize) -> Vec<ChunkId> {
    let last = assigned.len().saturating_sub(1);
    let quota = |index: usize| {
        if last == 0 {
            return per_owner;
        }
        let fall = index as f64 / last as f64 * per_owner.saturating_sub(1) as f64;
        (per_owner as f64 - fall).round() as usize
    };
    let mut picked = Vec::new();
    let mut used = Vec::with_capacity(assigned.len());
    let mut left_over = 0;
    for (index, own) in assigned.iter().enumerate() {
        let wanted = quota(index);
        let taken = wanted.min(own.len());
        picked.extend(own[..taken].iter().cloned());
        left_over += wanted - taken;
        used.push(taken);
    }
    for (own, used) in assigned.iter().zip(used) {
        let more = left_over.min(own.len() - used);
        picked.extend(own[used..used + more].iter().cloned());
        left_over -= more;
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(lists: &[&[&str]]) -> Vec<Vec<ChunkId>> {
        lists.iter().map(|list| list.iter().map(|id| ChunkId((*id).to_owned())).collect()).collect()
    }

    fn names(ids: &[ChunkId]) -> Vec<&str> {
        ids.iter().map(ChunkId::as_str).collect()
    }

    #[test]
    fn chunk_belongs_to_first_owner_ordered_by_count() {
        let assigned = assign_chunks(lists(&[&["a", "b", "c"], &["c", "d"], &["c", "b", "e"]]));
        assert_eq!(assigned, lists(&[&["c", "b", "a"], &["d"], &["e"]]));
    }

    #[test]
    fn weight_gives_more_chunks_to_first_owners() {
        let long: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
        let first: Vec<&str> = long.iter().map(String::as_str).collect();
        let assigned = lists(&[&first, &["b0"], &["c0", "c1", "c2"]]);
        // Quotas 5, 3, 1; the second owner does not use 2 of its 3, and the first one gets them.
        let got = pick_chunks(&assigned, ChunkPick::Weight, 5, &[]);
        assert_eq!(names(&got), ["a0", "a1", "a2", "a3", "a4", "b0", "c0", "a5", "a6"]);
        let only = pick_chunks(&lists(&[&first]), ChunkPick::Weight, 5, &[]);
        assert_eq!(only.len(), 5);
        assert_eq!(pick_chunks(&[], ChunkPick::Weight, 5, &[]), []);
    }

    #[test]
    fn similarity_picks_half_of_all_quotas() {
        let assigned = lists(&[&["a", "b", "c"], &["d", "e", "f"]]);
        let scores = [Some(0.1), Some(0.9), None, Some(0.5), Some(0.9), Some(0.2)];
        let got = pick_chunks(&assigned, ChunkPick::Vector, 3, &scores);
        assert_eq!(names(&got), ["b", "e", "d"], "half of 3 × 2");
        let without = pick_chunks(&assigned, ChunkPick::Vector, 3, &[None; 6]);
        assert_eq!(names(&without), ["a", "b", "c", "d"], "falls back to weight");
    }
}

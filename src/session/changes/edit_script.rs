//! A unified diff as an edit script. Two scripts can be merged if the second one starts with the result of the
//! first. The lines between the changes need not be known.

use std::collections::VecDeque;
use std::sync::Arc;

use similar::ChangeTag;

use tools::changed_lines;

/// Context lines around a change.
const CONTEXT_LINES: usize = 3;

/// One step through the old and the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DiffStep {
    /// A number of unchanged lines with unknown content.
    Gap(u64),
    /// An unchanged line. Lines include their `\n`, if they have one. They are shared, because scripts are
    /// copied.
    Same(Arc<str>),
    Remove(Arc<str>),
    Add(Arc<str>),
}

/// The changes of a text. All lines after the last step are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EditScript(Vec<DiffStep>);

impl EditScript {
    /// Parses a unified diff; `None` if it is incomplete.
    pub(super) fn parse(diff: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut at = 0_u64;
        let mut lines = diff.split_inclusive('\n').peekable();
        if !lines.next()?.starts_with("--- ") || !lines.next()?.starts_with("+++ ") {
            return None;
        }
        while let Some(head) = lines.next() {
            let (old, new) = head.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
            let range = |text: &str| -> Option<(u64, u64)> {
                let (start, count) = text.split_once(',').unwrap_or((text, "1"));
                let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
                Some((if count == 0 { start } else { start.checked_sub(1)? }, count))
            };
            let ((start, mut olds), (_, mut news)) = (range(old)?, range(new)?);
            let gap = start.checked_sub(at)?;
            if gap > 0 {
                steps.push(DiffStep::Gap(gap));
            }
            at = start + olds;
            while olds > 0 || news > 0 {
                let line = lines.next()?;
                let (sign, text) = line.split_at_checked(1)?;
                let mut text = text;
                if lines.peek().is_some_and(|next| next.starts_with('\\')) {
                    lines.next();
                    text = text.strip_suffix('\n').unwrap_or(text);
                }
                let text = Arc::from(text);
                let (from_old, from_new, step) = match sign {
                    " " => (1, 1, DiffStep::Same(text)),
                    "-" => (1, 0, DiffStep::Remove(text)),
                    "+" => (0, 1, DiffStep::Add(text)),
                    _ => return None,
                };
                olds = olds.checked_sub(from_old)?;
                news = news.checked_sub(from_new)?;
                steps.push(step);
            }
        }
        Some(Self(steps))
    }

    /// Merges this change with the following one. `None` if the lines differ, because another change came
    /// between.
    pub(super) fn merge_with(self, next: Self) -> Option<Self> {
        let (mut first, mut second): (VecDeque<DiffStep>, VecDeque<DiffStep>) =
            (self.0.into(), next.0.into());
        let mut out = Vec::new();
        loop {
            match (first.pop_front(), second.pop_front()) {
                (None, None) => break,
                (Some(DiffStep::Remove(line)), other) => {
                    out.push(DiffStep::Remove(line));
                    push_front_step(&mut second, other);
                }
                (other, Some(DiffStep::Add(line))) => {
                    out.push(DiffStep::Add(line));
                    push_front_step(&mut first, other);
                }
                // After the end of a script all lines are unchanged.
                (None, Some(step)) | (Some(step), None) => out.push(step),
                (Some(DiffStep::Gap(a)), Some(DiffStep::Gap(b))) => {
                    let both = a.min(b);
                    out.push(DiffStep::Gap(both));
                    push_front_step(&mut first, (a > both).then(|| DiffStep::Gap(a - both)));
                    push_front_step(&mut second, (b > both).then(|| DiffStep::Gap(b - both)));
                }
                (Some(DiffStep::Gap(n)), Some(known)) => {
                    push_front_step(&mut first, (n > 1).then(|| DiffStep::Gap(n - 1)));
                    out.push(known);
                }
                (Some(known), Some(DiffStep::Gap(n))) => {
                    push_front_step(&mut second, (n > 1).then(|| DiffStep::Gap(n - 1)));
                    out.push(known);
                }
                (Some(DiffStep::Same(a)), Some(DiffStep::Same(b))) if a == b => out.push(DiffStep::Same(a)),
                (Some(DiffStep::Same(a)), Some(DiffStep::Remove(b))) if a == b => {
                    out.push(DiffStep::Remove(a))
                }
                (Some(DiffStep::Add(a)), Some(DiffStep::Same(b))) if a == b => out.push(DiffStep::Add(a)),
                (Some(DiffStep::Add(a)), Some(DiffStep::Remove(b))) if a == b => {}
                _ => return None,
            }
        }
        Some(Self(out))
    }

    /// Turns lines that were removed and added again into unchanged lines, also if unchanged lines are
    /// between them. Call it once at the end, so that reverted changes are removed from the whole script.
    pub(super) fn normalize(self) -> Self {
        let mut out: Vec<DiffStep> = Vec::new();
        let mut known: Vec<DiffStep> = Vec::new();
        for step in self.0 {
            let DiffStep::Gap(more) = step else {
                known.push(step);
                continue;
            };
            normalize_lines(&mut known, &mut out);
            match out.last_mut() {
                Some(DiffStep::Gap(n)) => *n += more,
                _ => out.push(step),
            }
        }
        normalize_lines(&mut known, &mut out);
        Self(out)
    }

    /// Number of lines added and removed.
    pub(super) fn count_lines(&self) -> (u64, u64) {
        let count = |is: fn(&DiffStep) -> bool| self.0.iter().filter(|step| is(step)).count() as u64;
        (count(|step| matches!(step, DiffStep::Add(_))), count(|step| matches!(step, DiffStep::Remove(_))))
    }

    /// Prints a unified diff with the known context lines.
    pub(super) fn print(&self, from: &str, to: &str) -> String {
        let mut out = String::new();
        let is_change = |step: &DiffStep| matches!(step, DiffStep::Remove(_) | DiffStep::Add(_));
        let (mut old, mut new) = (0_u64, 0_u64);
        let mut at = 0;
        while at < self.0.len() {
            let Some(first) = self.0[at..].iter().position(is_change).map(|n| at + n) else { break };
            // The known lines directly before the change.
            let known = self.0[at..first].iter().rev().take(CONTEXT_LINES);
            let begin = first - known.take_while(|step| matches!(step, DiffStep::Same(_))).count();
            for step in &self.0[at..begin] {
                let lines = if let DiffStep::Gap(n) = step { *n } else { 1 };
                (old, new) = (old + lines, new + lines);
            }
            // Changes that are close to each other share one hunk.
            let (mut end, mut quiet) = (begin, 0);
            for (n, step) in self.0[begin..].iter().enumerate() {
                match step {
                    DiffStep::Gap(_) => break,
                    DiffStep::Same(_) if begin + n >= first => quiet += 1,
                    DiffStep::Same(_) => {}
                    DiffStep::Remove(_) | DiffStep::Add(_) => quiet = 0,
                }
                if quiet > 2 * CONTEXT_LINES {
                    break;
                }
                end = begin + n + 1;
            }
            end -= quiet.min(2 * CONTEXT_LINES).saturating_sub(CONTEXT_LINES);
            let hunk = &self.0[begin..end];
            let olds = hunk.iter().filter(|step| !matches!(step, DiffStep::Add(_))).count() as u64;
            let news = hunk.iter().filter(|step| !matches!(step, DiffStep::Remove(_))).count() as u64;
            let range = |start: u64, count: u64| match count {
                0 => format!("{start},0"),
                1 => format!("{}", start + 1),
                n => format!("{},{n}", start + 1),
            };
            out.push_str(&format!("@@ -{} +{} @@\n", range(old, olds), range(new, news)));
            for step in hunk {
                let (sign, line) = match step {
                    DiffStep::Same(line) => (' ', line),
                    DiffStep::Remove(line) => ('-', line),
                    DiffStep::Add(line) => ('+', line),
                    DiffStep::Gap(_) => continue,
                };
                out.push(sign);
                out.push_str(line);
                if !line.ends_with('\n') {
                    out.push_str("\n\\ No newline at end of file\n");
                }
            }
            (old, new) = (old + olds, new + news);
            at = end;
        }
        if out.is_empty() { out } else { format!("--- {from}\n+++ {to}\n{out}") }
    }
}

/// Compares the known lines of a section again, if that may shorten the diff.
fn normalize_lines(known: &mut Vec<DiffStep>, out: &mut Vec<DiffStep>) {
    let has = |is: fn(&DiffStep) -> bool| known.iter().any(is);
    if !(has(|step| matches!(step, DiffStep::Remove(_))) && has(|step| matches!(step, DiffStep::Add(_)))) {
        out.append(known);
        return;
    }
    let (mut before, mut after) = (String::new(), String::new());
    for step in known.drain(..) {
        match step {
            DiffStep::Same(line) => {
                before.push_str(&line);
                after.push_str(&line);
            }
            DiffStep::Remove(line) => before.push_str(&line),
            DiffStep::Add(line) => after.push_str(&line),
            DiffStep::Gap(_) => {}
        }
    }
    let diff = changed_lines(&before, &after);
    out.extend(diff.iter_all_changes().map(|change| match change.tag() {
        ChangeTag::Equal => DiffStep::Same(change.value().into()),
        ChangeTag::Delete => DiffStep::Remove(change.value().into()),
        ChangeTag::Insert => DiffStep::Add(change.value().into()),
    }));
}

fn push_front_step(steps: &mut VecDeque<DiffStep>, step: Option<DiffStep>) {
    if let Some(step) = step {
        steps.push_front(step);
    }
}

#[cfg(test)]
mod tests {
    use similar::TextDiff;

    use crate::changes::edit_script::*;

    fn diff(old: &str, new: &str) -> String {
        TextDiff::from_lines(old, new)
            .unified_diff()
            .context_radius(CONTEXT_LINES)
            .header("a", "b")
            .to_string()
    }

    fn script(old: &str, new: &str) -> EditScript {
        let diff = diff(old, new);
        if diff.is_empty() { EditScript::default() } else { EditScript::parse(&diff).expect("a diff") }
    }

    /// Applies a printed diff strictly.
    fn apply_patch(old: &str, diff: &str) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        let script =
            if diff.is_empty() { EditScript::default() } else { EditScript::parse(diff).expect("a diff") };
        for step in script.0 {
            match step {
                DiffStep::Gap(n) => {
                    out.extend(lines[at..at + n as usize].iter().copied());
                    at += n as usize;
                }
                DiffStep::Same(line) => {
                    assert_eq!(lines[at], &*line);
                    out.push_str(&line);
                    at += 1;
                }
                DiffStep::Remove(line) => {
                    assert_eq!(lines[at], &*line);
                    at += 1;
                }
                DiffStep::Add(line) => out.push_str(&line),
            }
        }
        out.extend(lines[at..].iter().copied());
        out
    }

    #[test]
    fn consecutive_edit_scripts_compose_into_one() {
        let first = script("a\nb\nc\n", "a\nB\nc\nd\n");
        let second = script("a\nB\nc\nd\n", "a\nBB\nc\n");
        let net = first.merge_with(second).expect("they fit");
        assert_eq!(net.print("a/x", "b/x"), "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+BB\n c\n");
        assert_eq!(net.count_lines(), (1, 1));
        let back = script("a\n", "b\n").merge_with(script("b\n", "a\n")).expect("they fit").normalize();
        assert_eq!((back.print("a/x", "b/x").as_str(), back.count_lines()), ("", (0, 0)));
        // A mismatch is detected if both scripts know the line.
        assert_eq!(script("a\n", "b\n").merge_with(script("c\n", "d\n")), None);
        for broken in
            ["", "--- a\n", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n", "--- a\n+++ b\n[the change is too large]\n"]
        {
            assert_eq!(EditScript::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn lone_carriage_return_ends_no_line() {
        let script = |old: &str, new: &str| {
            let text = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{old}\n+{new}\n");
            EditScript::parse(&text).expect("a diff")
        };
        let net = script("p\rq", "p\rr").merge_with(script("p\rr", "s\rr")).expect("they fit").normalize();
        assert_eq!(net.print("a/x", "b/x"), "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-p\rq\n+s\rr\n");
    }

    proptest::proptest! {
        #[test]
        fn composed_edit_scripts_produce_last_text(
            texts in proptest::collection::vec("([ab]\n){0,14}[ab]?", 2..6),
            frame in 0usize..12,
        ) {
            let texts: Vec<String> = texts.iter().map(|text| format!("{}{text}", "f\n".repeat(frame))).collect();
            let mut net = EditScript::default();
            for pair in texts.windows(2) {
                net = net.merge_with(script(&pair[0], &pair[1])).expect("they fit");
            }
            let net = net.normalize();
            let (first, last) = (&texts[0], &texts[texts.len() - 1]);
            let printed = net.print("a", "b");
            proptest::prop_assert_eq!(&apply_patch(first, &printed), last, "{}", printed);
            proptest::prop_assert_eq!(first == last, printed.is_empty());
        }
    }
}

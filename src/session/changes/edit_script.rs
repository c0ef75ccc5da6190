//! A unified diff as an edit script. Two scripts can be merged if the second one starts with the result of the
//! first. The lines between the changes need not be known.

use std::collections::VecDeque;
use std::sync::Arc;

use similar::ChangeTag;

use crate::tools::changed_lines;

/// Context lines around a change.
const CONTEXT: usize = 3;

/// One step through the old and the new text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A number of unchanged lines with unknown content.
    Gap(u64),
    /// An unchanged line. Lines include their `\n`, if they have one. They are shared, because scripts are
    /// copied.
    Same(Arc<str>),
    Remove(Arc<str>),
    Add(Arc<str>),
}

/// The changes of a text. After the last step everything is unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EditScript(Vec<Step>);

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
                steps.push(Step::Gap(gap));
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
                    " " => (1, 1, Step::Same(text)),
                    "-" => (1, 0, Step::Remove(text)),
                    "+" => (0, 1, Step::Add(text)),
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
    pub(super) fn then(self, next: Self) -> Option<Self> {
        let (mut first, mut second): (VecDeque<Step>, VecDeque<Step>) = (self.0.into(), next.0.into());
        let mut out = Vec::new();
        loop {
            match (first.pop_front(), second.pop_front()) {
                (None, None) => break,
                (Some(Step::Remove(line)), other) => {
                    out.push(Step::Remove(line));
                    back(&mut second, other);
                }
                (other, Some(Step::Add(line))) => {
                    out.push(Step::Add(line));
                    back(&mut first, other);
                }
                // After the end of a script all lines are unchanged.
                (None, Some(step)) | (Some(step), None) => out.push(step),
                (Some(Step::Gap(a)), Some(Step::Gap(b))) => {
                    let both = a.min(b);
                    out.push(Step::Gap(both));
                    back(&mut first, (a > both).then(|| Step::Gap(a - both)));
                    back(&mut second, (b > both).then(|| Step::Gap(b - both)));
                }
                (Some(Step::Gap(n)), Some(known)) => {
                    back(&mut first, (n > 1).then(|| Step::Gap(n - 1)));
                    out.push(known);
                }
                (Some(known), Some(Step::Gap(n))) => {
                    back(&mut second, (n > 1).then(|| Step::Gap(n - 1)));
                    out.push(known);
                }
                (Some(Step::Same(a)), Some(Step::Same(b))) if a == b => out.push(Step::Same(a)),
                (Some(Step::Same(a)), Some(Step::Remove(b))) if a == b => out.push(Step::Remove(a)),
                (Some(Step::Add(a)), Some(Step::Same(b))) if a == b => out.push(Step::Add(a)),
                (Some(Step::Add(a)), Some(Step::Remove(b))) if a == b => {}
                _ => return None,
            }
        }
        Some(Self(out))
    }

    /// Turns lines that were removed and added again into unchanged lines, also with unchanged lines between
    /// them. Call it once at the end: a change that a later one reverts then costs nothing.
    pub(super) fn settled(self) -> Self {
        let mut out: Vec<Step> = Vec::new();
        let mut known: Vec<Step> = Vec::new();
        for step in self.0 {
            let Step::Gap(more) = step else {
                known.push(step);
                continue;
            };
            settle(&mut known, &mut out);
            match out.last_mut() {
                Some(Step::Gap(n)) => *n += more,
                _ => out.push(step),
            }
        }
        settle(&mut known, &mut out);
        Self(out)
    }

    /// Number of lines added and removed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |is: fn(&Step) -> bool| self.0.iter().filter(|step| is(step)).count() as u64;
        (count(|step| matches!(step, Step::Add(_))), count(|step| matches!(step, Step::Remove(_))))
    }

    /// Prints a unified diff with the known context lines.
    pub(super) fn print(&self, from: &str, to: &str) -> String {
        let mut out = String::new();
        let is_change = |step: &Step| matches!(step, Step::Remove(_) | Step::Add(_));
        let (mut old, mut new) = (0_u64, 0_u64);
        let mut at = 0;
        while at < self.0.len() {
            let Some(first) = self.0[at..].iter().position(is_change).map(|n| at + n) else { break };
            // The known lines directly before the change.
            let known = self.0[at..first].iter().rev().take(CONTEXT);
            let begin = first - known.take_while(|step| matches!(step, Step::Same(_))).count();
            for step in &self.0[at..begin] {
                let lines = if let Step::Gap(n) = step { *n } else { 1 };
                (old, new) = (old + lines, new + lines);
            }
            // Changes that are close to each other share one hunk.
            let (mut end, mut quiet) = (begin, 0);
            for (n, step) in self.0[begin..].iter().enumerate() {
                match step {
                    Step::Gap(_) => break,
                    Step::Same(_) if begin + n >= first => quiet += 1,
                    Step::Same(_) => {}
                    Step::Remove(_) | Step::Add(_) => quiet = 0,
                }
                if quiet > 2 * CONTEXT {
                    break;
                }
                end = begin + n + 1;
            }
            end -= quiet.min(2 * CONTEXT).saturating_sub(CONTEXT);
            let hunk = &self.0[begin..end];
            let olds = hunk.iter().filter(|step| !matches!(step, Step::Add(_))).count() as u64;
            let news = hunk.iter().filter(|step| !matches!(step, Step::Remove(_))).count() as u64;
            let range = |start: u64, count: u64| match count {
                0 => format!("{start},0"),
                1 => format!("{}", start + 1),
                n => format!("{},{n}", start + 1),
            };
            out.push_str(&format!("@@ -{} +{} @@\n", range(old, olds), range(new, news)));
            for step in hunk {
                let (sign, line) = match step {
                    Step::Same(line) => (' ', line),
                    Step::Remove(line) => ('-', line),
                    Step::Add(line) => ('+', line),
                    Step::Gap(_) => continue,
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
fn settle(known: &mut Vec<Step>, out: &mut Vec<Step>) {
    let has = |is: fn(&Step) -> bool| known.iter().any(is);
    if !(has(|step| matches!(step, Step::Remove(_))) && has(|step| matches!(step, Step::Add(_)))) {
        out.append(known);
        return;
    }
    let (mut before, mut after) = (String::new(), String::new());
    for step in known.drain(..) {
        match step {
            Step::Same(line) => {
                before.push_str(&line);
                after.push_str(&line);
            }
            Step::Remove(line) => before.push_str(&line),
            Step::Add(line) => after.push_str(&line),
            Step::Gap(_) => {}
        }
    }
    let diff = changed_lines(&before, &after);
    out.extend(diff.iter_all_changes().map(|change| match change.tag() {
        ChangeTag::Equal => Step::Same(change.value().into()),
        ChangeTag::Delete => Step::Remove(change.value().into()),
        ChangeTag::Insert => Step::Add(change.value().into()),
    }));
}

fn back(steps: &mut VecDeque<Step>, step: Option<Step>) {
    if let Some(step) = step {
        steps.push_front(step);
    }
}

#[cfg(test)]
mod tests {
    use similar::TextDiff;

    use crate::session::changes::edit_script::*;

    fn diff(old: &str, new: &str) -> String {
        TextDiff::from_lines(old, new).unified_diff().context_radius(CONTEXT).header("a", "b").to_string()
    }

    fn script(old: &str, new: &str) -> EditScript {
        let diff = diff(old, new);
        if diff.is_empty() { EditScript::default() } else { EditScript::parse(&diff).expect("a diff") }
    }

    /// Applies a printed diff strictly.
    fn patched(old: &str, diff: &str) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut out, mut at) = (String::new(), 0);
        let script =
            if diff.is_empty() { EditScript::default() } else { EditScript::parse(diff).expect("a diff") };
        for step in script.0 {
            match step {
                Step::Gap(n) => {
                    out.extend(lines[at..at + n as usize].iter().copied());
                    at += n as usize;
                }
                Step::Same(line) => {
                    assert_eq!(lines[at], &*line);
                    out.push_str(&line);
                    at += 1;
                }
                Step::Remove(line) => {
                    assert_eq!(lines[at], &*line);
                    at += 1;
                }
                Step::Add(line) => out.push_str(&line),
            }
        }
        out.extend(lines[at..].iter().copied());
        out
    }

    #[test]
    fn consecutive_edit_scripts_compose_into_one() {
        let first = script("a\nb\nc\n", "a\nB\nc\nd\n");
        let second = script("a\nB\nc\nd\n", "a\nBB\nc\n");
        let net = first.then(second).expect("they fit");
        assert_eq!(net.print("a/x", "b/x"), "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b\n+BB\n c\n");
        assert_eq!(net.counts(), (1, 1));
        let back = script("a\n", "b\n").then(script("b\n", "a\n")).expect("they fit").settled();
        assert_eq!((back.print("a/x", "b/x").as_str(), back.counts()), ("", (0, 0)));
        // A mismatch is detected if both scripts know the line.
        assert_eq!(script("a\n", "b\n").then(script("c\n", "d\n")), None);
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
        let net = script("p\rq", "p\rr").then(script("p\rr", "s\rr")).expect("they fit").settled();
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
                net = net.then(script(&pair[0], &pair[1])).expect("they fit");
            }
            let net = net.settled();
            let (first, last) = (&texts[0], &texts[texts.len() - 1]);
            let printed = net.print("a", "b");
            proptest::prop_assert_eq!(&patched(first, &printed), last, "{}", printed);
            proptest::prop_assert_eq!(first == last, printed.is_empty());
        }
    }
}

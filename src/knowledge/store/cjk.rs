//! Words of Chinese, Japanese and Korean. Their texts have no spaces, or inflected words, so the tokenizer of the
//! full-text index would make one token of a whole sentence. A run of their characters is indexed as overlapping
//! pairs: 解析器 → 解析, 析器, 器. The last character stands alone, so that a search for one character finds it as the
//! beginning of a token.

/// Maximum number of terms of one search text. In a longer one, only every second, third … pair is searched.
const MAX_TERMS: usize = 24;

/// Particles and questions that are in most texts. A pair with one of the first kind spans two words.
const CHINESE_PARTICLES: &[char] = &['的', '了', '吗', '呢', '吧', '么'];
const QUESTION_WORDS: &[&str] =
    &["如何", "怎样", "哪里", "哪个", "为何", "什么", "怎么", "可以", "我们", "这个", "那个", "无论", "是否"];

/// Whether a character belongs to a script that is indexed in pairs.
pub(super) const fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{1100}'..='\u{11ff}'      // Hangul letters
        | '\u{3005}'..='\u{3007}'    // iteration marks, zero
        | '\u{3040}'..='\u{30ff}'    // Hiragana, Katakana
        | '\u{3130}'..='\u{318f}'    // Hangul letters, single
        | '\u{31f0}'..='\u{31ff}'    // small Katakana
        | '\u{3400}'..='\u{4dbf}'    // ideographs
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'    // Hangul syllables
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'    // half-width Katakana
        | '\u{20000}'..='\u{3ffff}')
}

const fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{309f}')
}

/// A part of a word in one script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordPart<'a> {
    /// Letters, digits and underscores.
    Word(&'a str),
    /// Characters that are indexed in pairs.
    Run(&'a str),
}

/// The parts of a word: `agentd的会话` → agentd, 的会话. A word of one script is one part.
pub(super) fn pieces(word: &str) -> Vec<WordPart<'_>> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let kind = is_cjk(first);
        let end = rest.find(|c| is_cjk(c) != kind).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(if kind { WordPart::Run(piece) } else { WordPart::Word(piece) });
        rest = after;
    }
    pieces
}

/// The tokens that index a run: its pairs and its last character.
pub(super) fn tokens(run: &str) -> impl Iterator<Item = &str> {
    let begins: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    let last = begins.last().copied().unwrap_or(0);
    let ends = run.char_indices().map(|(at, _)| at).skip(2).chain([run.len()]);
    let pairs = begins.len().saturating_sub(1);
    begins.into_iter().take(pairs).zip(ends).map(|(begin, end)| &run[begin..end]).chain([&run[last..]])
}

/// The full-text terms of the runs of a search text, quoted. A single character is searched as the beginning of
/// tokens.
pub(super) fn search_terms(runs: &[&str]) -> Vec<String> {
    let mut pairs: Vec<&str> = Vec::new();
    let mut common: Vec<&str> = Vec::new();
    let mut singles: Vec<&str> = Vec::new();
    for run in runs {
        if run.chars().nth(1).is_none() {
            let is_particle = run.chars().all(|c| CHINESE_PARTICLES.contains(&c) || is_hiragana(c));
            let list = if is_particle { &mut common } else { &mut singles };
            push_new(list, run);
            continue;
        }
        for pair in tokens(run).filter(|token| token.chars().nth(1).is_some()) {
            let list = if is_common(pair) { &mut common } else { &mut pairs };
            push_new(list, pair);
        }
    }
    if pairs.is_empty() && singles.is_empty() {
        // A question of particles alone must still find something.
        pairs = common;
    }
    let step = pairs.len().div_ceil(MAX_TERMS).max(1);
    let pairs = pairs.into_iter().step_by(step);
    let quoted = pairs.map(|pair| match pair.chars().nth(1) {
        Some(_) => format!("\"{pair}\""),
        None => format!("\"{pair}\" *"),
    });
    quoted.chain(singles.into_iter().take(MAX_TERMS).map(|single| format!("\"{single}\" *"))).collect()
}

fn push_new<'a>(list: &mut Vec<&'a str>, term: &'a str) {
    if !list.contains(&term) {
        list.push(term);
    }
}

/// Whether a pair does not describe a text: Japanese endings, Chinese particles, words of questions.
fn is_common(pair: &str) -> bool {
    pair.chars().all(is_hiragana)
        || pair.chars().any(|c| CHINESE_PARTICLES.contains(&c))
        || QUESTION_WORDS.contains(&pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_where_their_script_changes() {
        use WordPart::{Run, Word};
        assert_eq!(pieces("agentd的会话"), [Word("agentd"), Run("的会话")]);
        assert_eq!(pieces("파일을"), [Run("파일을")]);
        assert_eq!(pieces("read_file"), [Word("read_file")]);
        assert_eq!(pieces("v2版a"), [Word("v2"), Run("版"), Word("a")]);
        assert_eq!(pieces("𠮷野家"), [Run("𠮷野家")]);
    }

    #[test]
    fn runs_are_indexed_as_pairs_and_last_character() {
        let all = |run| tokens(run).collect::<Vec<_>>();
        assert_eq!(all("解析器"), ["解析", "析器", "器"]);
        assert_eq!(all("解析"), ["解析", "析"]);
        assert_eq!(all("猫"), ["猫"]);
        assert_eq!(all("キャッシュ"), ["キャ", "ャッ", "ッシ", "シュ", "ュ"]);
    }

    #[test]
    fn searched_runs_lose_particles_unless_nothing_else_is_left() {
        assert_eq!(search_terms(&["会话的状态"]), ["\"会话\"", "\"状态\""]);
        assert_eq!(search_terms(&["如何解析"]), ["\"何解\"", "\"解析\""]);
        assert_eq!(search_terms(&["です"]), ["\"です\""]);
        assert_eq!(search_terms(&["猫", "の"]), ["\"猫\" *"]);
    }

    #[test]
    fn long_runs_keep_terms_from_all_their_parts() {
        let run: String = (0..300_u32).filter_map(|n| char::from_u32(0x4e00 + n)).collect();
        let found = search_terms(&[&run]);
        assert!(found.len() <= MAX_TERMS, "{}", found.len());
        let last = found.last().expect("a term").trim_matches('"').chars().next().expect("a character");
        assert!(last > '\u{4f00}', "the end of the text is searched too");
    }
}

//! Characters that are invisible, or that change how the text around them is shown. The checks of file names, command
//! lines and terminal output use this table.
//!
//! Sources: the Unicode property Default_Ignorable_Code_Point (DerivedCoreProperties.txt), format characters
//! (category Cf), and letters without a glyph.

/// Selects the coloured form of an emoji. Names and texts may contain it; a command line may not.
pub const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Whether a character is invisible to users: control characters, and characters that format text or change its
/// direction, except [`EMOJI_SELECTOR`]. No displayed path or name may contain such a
/// character.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'                           // soft hyphen
            | '\u{34f}'                        // combining grapheme joiner
            | '\u{600}'..='\u{605}'           // Arabic number signs
            | '\u{61c}'                        // Arabic letter mark
            | '\u{6dd}' | '\u{70f}' | '\u{8e2}' // marks around following letters
            | '\u{115f}'..='\u{1160}'         // Hangul fillers
            | '\u{17b4}'..='\u{17b5}'         // Khmer inherent vowels
            | '\u{180b}'..='\u{180f}'         // Mongolian selectors and vowel separator
            | '\u{200b}'..='\u{200f}'         // zero width, left and right marks
            | '\u{2028}'..='\u{202e}'         // line and paragraph separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}'         // word joiner, invisible operators, isolates
            | '\u{2800}'                       // blank Braille pattern
            | '\u{3164}'                       // Hangul filler
            | '\u{fe00}'..='\u{fe0e}'         // variation selectors
            | '\u{feff}'                       // byte order mark
            | '\u{ffa0}'                       // half-width Hangul filler
            | '\u{fff0}'..='\u{fffb}'         // unassigned, interlinear annotation
            | '\u{110bd}' | '\u{110cd}'       // Kaithi number signs
            | '\u{13430}'..='\u{1345f}'       // Egyptian format controls
            | '\u{1bca0}'..='\u{1bca3}'       // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}'       // musical format controls
            | '\u{e0000}'..='\u{e0fff}') // tags and supplementary selectors
}

/// Whether the invisible character at this byte of a text belongs to the letters or the emoji around it, as in Persian
/// words, in families of emoji, in flags and in words with soft hyphens. It is then text, which users see by its effect.
/// File names may contain it; comparisons of names ignore it (`names::fold_case`).
#[must_use]
pub fn is_joiner_at(text: &str, index: usize) -> bool {
    let (before, rest) = text.split_at(index);
    let mut rest = rest.chars();
    let Some(c) = rest.next() else { return false };
    match c {
        '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200c}' | '\u{200d}' | '\u{2060}' => {
            before.chars().next_back().is_some_and(is_joinable) && rest.next().is_some_and(is_joinable)
        }
        // Selectors change the form of the character before them.
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0e}' | '\u{e0100}'..='\u{e01ef}' => {
            before.chars().next_back().is_some_and(|c| is_joinable(c) || matches!(c, '#' | '*'))
        }
        // The letters of a flag, as of Scotland, after a black flag. Longer runs could hide a text.
        '\u{e0020}'..='\u{e007f}' => {
            let is_tag = |c: &char| matches!(c, '\u{e0020}'..='\u{e007f}');
            let run = before.chars().rev().take_while(is_tag).count();
            run <= MAX_FLAG_TAGS && before.chars().nth_back(run) == Some('\u{1f3f4}')
        }
        _ => false,
    }
}

/// Whether [`is_joiner_at`] can be true for the character at the end or the beginning of a part of a text, with the rest
/// of the text around it.
#[must_use]
pub fn is_joiner(c: char) -> bool {
    is_joinable(c) && is_invisible(c) || c == '\u{2060}'
}

/// Tags before the last one of a flag: country, region.
const MAX_FLAG_TAGS: usize = 6;

/// Letters, digits, marks, emoji, and selectors and joiners themselves: runs of them occur in emoji.
fn is_joinable(c: char) -> bool {
    match c {
        c if c.is_ascii() => c.is_ascii_alphanumeric(),
        '\u{ad}'
        | '\u{34f}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200c}'
        | '\u{200d}'
        | '\u{fe00}'..='\u{fe0f}' => true,
        '\u{e0100}'..='\u{e01ef}' => true,
        c => !is_invisible(c) && !c.is_whitespace(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each invisible character of the text is a joiner at its place.
    fn is_text(text: &str) -> bool {
        text.char_indices().all(|(index, c)| !is_invisible(c) || is_joiner_at(text, index))
    }

    #[test]
    fn joiners_between_letters_and_emoji_are_text() {
        let texts = [
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}\u{200d}🔥",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "Donau\u{ad}dampf\u{ad}schiff",
            "©\u{fe0e} 1\u{fe0e}\u{20e3}",
            "葛\u{e0100}城",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "ᠠ\u{180e}ᠠ",
        ];
        for text in texts {
            assert!(is_text(text), "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_without_letters_around_them_are_no_joiners() {
        let tags: String = std::iter::once('🏴').chain(['\u{e0061}'; 20]).collect();
        let texts =
            ["\u{200d}", "a\u{200d}", "\u{200d}a", ".\u{200c}env", "a \u{ad} b", "a\u{200b}b", "a\u{202e}b"];
        for text in texts.into_iter().chain(["\u{feff}a", "x\u{e0041}", "\u{fe00}", "a\u{1b}b", &tags]) {
            assert!(!is_text(text), "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_are_recognised_and_visible_ones_are_not() {
        for c in ['\0', '\n', '\u{7f}', '\u{85}', '\u{202e}', '\u{200b}', '\u{feff}', '\u{2028}', '\u{e0041}']
        {
            assert!(is_invisible(c), "{c:?}");
        }
        for c in ['a', ' ', 'é', '你', '😀', EMOJI_SELECTOR, '\u{301}', '\u{a0}'] {
            assert!(!is_invisible(c), "{c:?}");
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

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

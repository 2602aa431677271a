//! JSON as our files use it.

use serde::Serialize;

/// Indented JSON with a newline at its end. Only for this crate's own types, none of which can fail to serialise: all
/// map keys are strings, and numbers that are not finite become `null`.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("own types serialise");
    text.push('\n');
    text
}

/// Compact JSON that may stand inside a `<script>` element: no `<` that could begin a closing tag or a comment, and no
/// line separator that older JavaScript takes for the end of a line. Still the same JSON value.
pub(crate) fn for_script(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("own types serialise");
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // These can only occur inside strings, where the escape means the same.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe.push_str(&format!("\\u{:04x}", c as u32)),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn script_json_is_the_same_value_without_markup(text in any::<String>()) {
            let tricky = format!("{text}</script><!--&{text}\u{2028}");
            let json = for_script(&tricky);
            let markup = json.contains(['<', '>', '&', '\u{2028}']);
            prop_assert!(!markup);
            prop_assert_eq!(serde_json::from_str::<String>(&json).expect("valid"), tricky);
        }
    }
}

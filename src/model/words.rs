//! Text from outside made fit to be shown: bounded, on one line, without control characters.

/// Returns `text` on one line, without control characters (a cloud's words must not move the cursor or colour the terminal),
/// white space collapsed, cut to `limit` characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > limit * 4 {
            break;
        }
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_length_are_bounded() {
        assert_eq!(one_line("a\n\u{1b}[31mb\t c", 80), "a [31mb c");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line(&"x ".repeat(100_000), 10).chars().count(), 11);
    }
}

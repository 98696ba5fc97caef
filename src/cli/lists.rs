//! Lists on the command line: comma separated and repeatable.

/// Splits words at commas that no blank follows (a Vast zone is `City, CC`); empty parts are left out.
pub fn split(words: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    for word in words {
        let mut part = String::new();
        let mut chars = word.chars().peekable();
        while let Some(c) = chars.next() {
            if c == ',' && chars.peek().is_none_or(|next| !next.is_whitespace()) {
                parts.push(std::mem::take(&mut part));
            } else {
                part.push(c);
            }
        }
        parts.push(part);
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_with_a_blank_belong_to_the_word() {
        let words = |text: &[&str]| split(&text.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["RTX4090:1,H100:8", "A100"]), ["RTX4090:1", "H100:8", "A100"]);
        assert_eq!(words(&["Paris, FR,Oslo, NO"]), ["Paris, FR", "Oslo, NO"]);
        assert_eq!(words(&[",", ""]), [""; 0]);
    }
}

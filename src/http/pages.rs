//! Lists that come in pages, each naming the next one by a cursor.

use std::collections::HashSet;

/// One page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// The cursor of the next page; none on the last one.
    pub next: Option<String>,
}

/// Why a list could not be read to its end. A list that is silently short would make machines disappear.
#[derive(Debug, PartialEq, Eq)]
pub enum PagesError<E> {
    /// A page did not come.
    Page(E),
    /// A page names one that was read already.
    Repeated,
    /// There is no end to it.
    TooMany(usize),
}

/// Reads all pages, at most `most`: `page` gets the cursor of the page to read, none for the first.
pub async fn all<T, E, F>(
    most: usize,
    mut page: impl FnMut(Option<String>) -> F,
) -> Result<Vec<T>, PagesError<E>>
where
    F: Future<Output = Result<Page<T>, E>>,
{
    let mut items = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor = None;
    for _ in 0..most {
        let read = page(cursor).await.map_err(PagesError::Page)?;
        items.extend(read.items);
        let Some(next) = read.next else { return Ok(items) };
        if !seen.insert(next.clone()) {
            return Err(PagesError::Repeated);
        }
        cursor = Some(next);
    }
    Err(PagesError::TooMany(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(pages: &[(u8, Option<&str>)]) -> Result<Vec<u8>, PagesError<String>> {
        let mut left = pages.iter();
        all(5, |_| {
            let page = left.next().ok_or_else(|| "no page".to_owned());
            let page = page.map(|(item, next)| Page { items: vec![*item], next: next.map(str::to_owned) });
            std::future::ready(page)
        })
        .await
    }

    #[tokio::test]
    async fn pages_are_read_to_the_end_or_not_at_all() {
        assert_eq!(read(&[(1, Some("a")), (2, Some("b")), (3, None)]).await.unwrap(), [1, 2, 3]);
        assert_eq!(read(&[(1, Some("a")), (2, Some("a")), (3, None)]).await, Err(PagesError::Repeated));
        assert_eq!(read(&[(1, Some("a"))]).await, Err(PagesError::Page("no page".to_owned())));
        let endless: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(|cursor| (0, Some(cursor))).to_vec();
        assert_eq!(read(&endless).await, Err(PagesError::TooMany(5)));
    }
}

use serde_json::json;

use super::super::jwt::tests::pem;
use super::*;

fn file(change: impl Fn(&mut Value)) -> String {
    let mut file = json!({"subject-credentials": {
        "type": "JWT", "alg": "RS256", "private-key": pem(),
        "kid": "publickey-e00abc", "iss": "serviceaccount-e00abc", "sub": "serviceaccount-e00abc",
    }});
    change(&mut file["subject-credentials"]);
    file.to_string()
}

fn without(member: &'static str) -> String {
    file(|subject| {
        subject.as_object_mut().unwrap().remove(member);
    })
}

#[test]
fn the_key_file_of_a_service_account() {
    for text in [file(|_| {}), without("type"), without("alg"), without("sub"), without("iss")] {
        let Ok(Credentials::Key(key)) = in_key_file(&text) else { panic!("{:?}", in_key_file(&text)) };
        assert_eq!((key.account.as_str(), key.id.as_str()), ("serviceaccount-e00abc", "publickey-e00abc"));
    }
    for (text, part) in [
        (file(|subject| subject["alg"] = json!("ES256")), "RS256"),
        (file(|subject| subject["type"] = json!("password")), "JWT"),
        (file(|subject| subject["sub"] = json!("serviceaccount-other")), "differ"),
        (file(|subject| subject["private-key"] = json!("s3cret")), "not PEM"),
        (file(|subject| subject["private-key"] = json!(7)), "not PEM"),
        (file(|subject| subject["kid"] = json!("../x")), "is none"),
        (without("kid"), "no public key id"),
        ("{}".to_owned(), "no `subject-credentials`"),
        (r#"{"subject-credentials": "s3cret"}"#.to_owned(), "not those of a service account"),
        (r#"{"private": "s3cret""#.to_owned(), "not a JSON object"),
        ("[]".to_owned(), "not a JSON object"),
    ] {
        let error = in_key_file(&text).unwrap_err();
        let words = format!("{error} {error:?}");
        assert!(words.contains(part) && !words.contains("s3cret"), "{words}");
    }
}

#[test]
fn nothing_shows_a_secret() {
    let sources = [
        TokenSource::Given(Secret::trimmed("s3cret-s3cret")),
        TokenSource::Command(vec!["print-token".to_owned(), "--key=s3cret".to_owned()]),
        TokenSource::Github {
            url: "https://x.example/?s3cret".to_owned(),
            token: Secret::trimmed("s3cret-s3cret"),
            audience: None,
        },
    ];
    for source in sources {
        let federated = Credentials::Federated { account: "serviceaccount-e00abc".to_owned(), source };
        assert!(!format!("{federated:?}").contains("s3cret"), "{federated:?}");
        assert_eq!(federated.hint(), "serviceaccount-e00abc");
    }
    let token = Credentials::token(" ne1s3cret-s3cret-abcd\n").unwrap();
    assert_eq!(token.hint(), "…abcd");
    assert!(!format!("{token:?}").contains("s3cret") && !token.renews());
    assert!(Credentials::token(" \n").is_none());
    let key = in_key_file(&file(|_| {})).unwrap();
    assert!(!format!("{key:?}").contains("PRIVATE") && key.renews());
}

proptest::proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,60}") {
        let _ = in_key_file(&text);
    }
}

mod issuer;

use serde_json::{Value, json};
use transcript_core::{
    Timestamp,
    lookup::{Entitlement, EntitlementProof, EntitlementVerifier},
};

use super::TokenEntitlements;
use crate::EntitlementOptions;
use issuer::{TestIssuer, TestKeyKind, encode};

/// 2026-11-20T00:00:00Z, in seconds.
const NOW: i64 = 1_795_132_800;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn options(keys: &[Value]) -> EntitlementOptions {
    EntitlementOptions { keys: json!({ "keys": keys }).to_string(), audience: None, issuer: None }
}

fn trusting(issuers: &[&TestIssuer]) -> TokenEntitlements {
    let keys: Vec<_> = issuers.iter().map(|issuer| issuer.jwk()).collect();
    TokenEntitlements::new(&options(&keys)).unwrap()
}

fn verify(entitlements: &TokenEntitlements, token: &str) -> Option<Entitlement> {
    entitlements.verify(&EntitlementProof::new(token), at(NOW))
}

/// Claims that are valid for an hour.
fn claims() -> Value {
    json!({ "sub": "ann", "plan": "plus", "exp": NOW + 3600 })
}

/// The claims with some of them changed; null removes a claim.
fn with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

#[test]
fn token_of_each_key_kind_is_accepted() {
    let expect = Entitlement { subject: "ann".to_owned(), expires_at: at(NOW + 3600) };
    for kind in TestKeyKind::ALL {
        let issuer = TestIssuer::new(kind, "k1");
        let token = issuer.token(&claims());
        assert_eq!(verify(&trusting(&[&issuer]), &token), Some(expect.clone()), "{kind:?}");
        // Without its own `alg`, a key has the default of its kind.
        let mut jwk = issuer.jwk();
        jwk.as_object_mut().unwrap().remove("alg");
        let unpinned = TokenEntitlements::new(&options(&[jwk])).unwrap();
        assert_eq!(verify(&unpinned, &token), Some(expect.clone()), "{kind:?}");
        let mut other = TestIssuer::new(kind, "k1").jwk();
        if kind == TestKeyKind::Rs256 {
            other["n"] = json!(format!("AQAB{}", other["n"].as_str().unwrap()));
        }
        let other = TokenEntitlements::new(&options(&[other])).unwrap();
        assert_eq!(verify(&other, &token), None, "{kind:?}: wrong key");
    }
}

#[test]
fn token_with_changed_bit_is_rejected() {
    for kind in TestKeyKind::ALL {
        let issuer = TestIssuer::new(kind, "k1");
        let trusted = trusting(&[&issuer]);
        let token = issuer.token(&claims());
        for index in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[index] ^= 1;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            assert_eq!(verify(&trusted, &changed), None, "{kind:?}: {changed}");
        }
        let parts: Vec<_> = token.split('.').collect();
        for cut in [
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}."),
            format!("{token}="),
            format!(" {token}"),
            format!("{}..{}", parts[0], parts[2]),
            token[..token.len() - 4].to_owned(),
        ] {
            assert_eq!(verify(&trusted, &cut), None, "{kind:?}: {cut}");
        }
    }
}

#[test]
fn token_algorithm_must_match_key() {
    let (rsa, secret, edwards) = (
        TestIssuer::new(TestKeyKind::Rs256, "rsa"),
        TestIssuer::new(TestKeyKind::Hs256, "secret"),
        TestIssuer::new(TestKeyKind::EdDsa, "edwards"),
    );
    let trusted = trusting(&[&rsa, &secret, &edwards]);
    for algorithm in ["none", "None", "NONE", "nOnE", "", "HS1", "RS256 "] {
        let head = encode(&json!({ "alg": algorithm, "typ": "JWT", "kid": "rsa" }));
        let body = encode(&claims());
        assert_eq!(verify(&trusted, &format!("{head}.{body}.")), None, "{algorithm}");
        let signed = rsa.sign(&json!({ "alg": algorithm, "kid": "rsa" }), &claims());
        assert_eq!(verify(&trusted, &signed), None, "{algorithm}");
    }
    // A valid signature, under the name of another algorithm or key.
    for (kid, algorithm) in [("rsa", "RS384"), ("rsa", "PS256"), ("rsa", "HS256"), ("secret", "RS256")] {
        let signed = rsa.sign(&json!({ "alg": algorithm, "kid": kid }), &claims());
        assert_eq!(verify(&trusted, &signed), None, "{kid} {algorithm}");
    }
    // A public key is known to everyone: it must not work as a secret.
    for public in [&rsa, &edwards] {
        for bytes in public.public_forms() {
            let forger = TestIssuer::with_secret(&bytes, "forger");
            let kid = public.jwk()["kid"].clone();
            let forged = forger.sign(&json!({ "alg": "HS256", "kid": kid }), &claims());
            assert_eq!(verify(&trusted, &forged), None);
        }
    }
    // A key that the token contains is ignored.
    let stranger = TestIssuer::new(TestKeyKind::EdDsa, "edwards");
    let header =
        json!({ "alg": "EdDSA", "kid": "edwards", "jwk": stranger.jwk(), "jku": "https://evil.example" });
    assert_eq!(verify(&trusted, &stranger.sign(&header, &claims())), None);
    // Critical extensions are unsupported.
    let header = json!({ "alg": "EdDSA", "kid": "edwards", "crit": ["b64"], "b64": false });
    assert_eq!(verify(&trusted, &edwards.sign(&header, &claims())), None);
}

#[test]
fn token_key_id_selects_key() {
    let (one, two) = (TestIssuer::new(TestKeyKind::EdDsa, "one"), TestIssuer::new(TestKeyKind::EdDsa, "two"));
    let nameless = one.sign(&json!({ "alg": "EdDSA" }), &claims());
    assert!(verify(&trusting(&[&one]), &nameless).is_some(), "the only key is used");
    assert_eq!(verify(&trusting(&[&one, &two]), &nameless), None, "the token must name its key");
    for (kid, is_good) in [("one", true), ("two", false), ("One", false), ("", false), ("three", false)] {
        let token = one.sign(&json!({ "alg": "EdDSA", "kid": kid }), &claims());
        assert_eq!(verify(&trusting(&[&one, &two]), &token).is_some(), is_good, "{kid}");
        assert_eq!(verify(&trusting(&[&one]), &token).is_some(), is_good, "{kid}");
    }
    let token = one.sign(&json!({ "alg": "EdDSA", "kid": 1 }), &claims());
    assert_eq!(verify(&trusting(&[&one]), &token), None);
}

#[test]
fn token_times_have_one_minute_leeway() {
    let issuer = TestIssuer::new(TestKeyKind::EdDsa, "k1");
    let trusted = trusting(&[&issuer]);
    let latest = Timestamp::from_millis(i64::MAX);
    for (changes, until) in [
        (json!({ "exp": NOW + 1 }), Some(at(NOW + 1))),
        (json!({ "exp": NOW }), Some(at(NOW + 60))),
        (json!({ "exp": NOW - 59 }), Some(at(NOW + 1))),
        (json!({ "exp": NOW - 60 }), None),
        (json!({ "exp": NOW - 86_400 }), None),
        (json!({ "exp": 0 }), None),
        (json!({ "exp": -1 }), None),
        (json!({ "exp": NOW as f64 + 0.5 }), Some(Timestamp::from_millis(NOW * 1000 + 500))),
        (json!({ "exp": i64::MAX }), Some(latest)),
        (json!({ "exp": u64::MAX }), Some(latest)),
        (json!({ "exp": 1e300 }), Some(latest)),
        (json!({ "exp": -1e300 }), None),
        (json!({ "exp": null }), None),
        (json!({ "exp": (NOW + 3600).to_string() }), None),
        (json!({ "exp": [NOW + 3600] }), None),
        (json!({ "nbf": NOW + 60, "iat": NOW + 60 }), Some(at(NOW + 3600))),
        (json!({ "nbf": NOW + 61 }), None),
        (json!({ "iat": NOW + 61 }), None),
        (json!({ "nbf": 1e300 }), None),
        (json!({ "nbf": "soon" }), None),
    ] {
        let token = issuer.token(&with(changes.clone()));
        assert_eq!(verify(&trusted, &token).map(|good| good.expires_at), until, "{changes}");
    }
}

#[test]
fn token_without_plan_or_subject_is_rejected() {
    let issuer = TestIssuer::new(TestKeyKind::EdDsa, "k1");
    let trusted = trusting(&[&issuer]);
    for changes in [
        json!({ "sub": null }),
        json!({ "sub": 7 }),
        json!({ "plan": null }),
        json!({ "plan": "free" }),
        json!({ "plan": "plus_inactive" }),
        json!({ "plan": "Plus" }),
        json!({ "plan": "" }),
        json!({ "plan": true }),
        json!({ "plan": ["plus"] }),
    ] {
        assert_eq!(verify(&trusted, &issuer.token(&with(changes.clone()))), None, "{changes}");
    }
    for body in [json!([]), json!("plus"), json!(null)] {
        assert_eq!(verify(&trusted, &issuer.token(&body)), None, "{body}");
    }
    let twice = r#"{"sub":"ann","sub":"bob","plan":"plus","exp":1795139999}"#;
    assert_eq!(verify(&trusted, &issuer.sign_text(r#"{"alg":"EdDSA","kid":"k1"}"#, twice)), None);
    let deep = "[".repeat(3_000);
    for text in ["", ".", "..", "...", "a.b.c", "\u{e9}.\u{e9}.\u{e9}", "eyJhbGciOiJFZERTQSJ9.e30.", &deep] {
        assert_eq!(verify(&trusted, text), None, "{text}");
    }
    assert_eq!(verify(&trusted, &issuer.sign_text(&deep, &deep)), None);
}

#[test]
fn token_audience_and_issuer_are_checked_if_set() {
    let key = TestIssuer::new(TestKeyKind::EdDsa, "k1");
    let open = |audience: Option<&str>, issuer: Option<&str>| {
        let (audience, issuer) = (audience.map(str::to_owned), issuer.map(str::to_owned));
        TokenEntitlements::new(&EntitlementOptions { audience, issuer, ..options(&[key.jwk()]) }).unwrap()
    };
    for (audience, issuer, changes, is_good) in [
        (None, None, json!({ "aud": "elsewhere", "iss": "anyone" }), true),
        (Some("v"), None, json!({ "aud": "v" }), true),
        (Some("v"), None, json!({ "aud": ["x", "v"] }), true),
        (Some("v"), None, json!({ "aud": "x" }), false),
        (Some("v"), None, json!({ "aud": ["x"] }), false),
        (Some("v"), None, json!({ "aud": [] }), false),
        (Some("v"), None, json!({ "aud": 7 }), false),
        (Some("v"), None, json!({}), false),
        (None, Some("i"), json!({ "iss": "i" }), true),
        (None, Some("i"), json!({ "iss": "I" }), false),
        (None, Some("i"), json!({ "iss": 7 }), false),
        (None, Some("i"), json!({}), false),
        (Some("v"), Some("i"), json!({ "aud": "v", "iss": "i" }), true),
        (Some("v"), Some("i"), json!({ "aud": "i", "iss": "v" }), false),
    ] {
        let verified = verify(&open(audience, issuer), &key.token(&with(changes.clone())));
        assert_eq!(verified.is_some(), is_good, "{audience:?} {issuer:?} {changes}");
    }
}

#[test]
fn key_set_unusable_is_rejected() {
    let key = |kind, kid| TestIssuer::new(kind, kid).jwk();
    let changed = |mut jwk: Value, name: &str, value: Value| {
        jwk[name] = value;
        jwk
    };
    let nameless = |mut jwk: Value| {
        jwk.as_object_mut().unwrap().remove("kid");
        jwk
    };
    let (rsa, ec, ed, oct) = (
        key(TestKeyKind::Rs256, "a"),
        key(TestKeyKind::Es256, "b"),
        key(TestKeyKind::EdDsa, "c"),
        key(TestKeyKind::Hs256, "d"),
    );
    let encryption = changed(rsa.clone(), "use", json!("enc"));
    for (keys, expect) in [
        (vec![], Some("no key for signatures")),
        (vec![json!({})], Some("no key for signatures")),
        (vec![json!(7)], Some("no key for signatures")),
        (vec![encryption.clone()], Some("no key for signatures")),
        (vec![changed(rsa.clone(), "alg", json!("HS256"))], Some("no key for signatures")),
        (vec![changed(rsa.clone(), "alg", json!("none"))], Some("no key for signatures")),
        (vec![changed(oct.clone(), "alg", json!("RS256"))], Some("no key for signatures")),
        (vec![changed(oct.clone(), "key_ops", json!(["sign"]))], Some("no key for signatures")),
        (vec![changed(oct.clone(), "k", json!("c2hvcnQ"))], Some("key 1 is too short a secret")),
        (vec![changed(oct.clone(), "k", json!(7))], Some("key 1 is incomplete")),
        (vec![changed(rsa.clone(), "n", json!("AQAB"))], Some("key 1 must have from 2048")),
        (vec![changed(ec.clone(), "x", json!("AQAB"))], Some("key 1 is not a point of P-256")),
        (vec![changed(ed.clone(), "x", json!("not base64!"))], Some("key 1 is incomplete")),
        (vec![ed.clone(), ed.clone()], Some("key 2 has the kid of another key")),
        (vec![nameless(ed.clone()), oct.clone()], Some("each needs a kid")),
        (vec![nameless(ed.clone())], None),
        (vec![ed.clone(), encryption, json!({ "kty": "EC", "crv": "secp256k1" })], None),
        (vec![rsa, ec, ed, oct], None),
    ] {
        let opened = TokenEntitlements::new(&options(&keys)).map(drop).map_err(|error| error.to_string());
        match (&opened, expect) {
            (Ok(()), None) => {}
            (Err(message), Some(words)) => assert!(message.contains(words), "{keys:?}: {message}"),
            _ => panic!("{keys:?}: {opened:?}"),
        }
    }
    for keys in ["", "[]", "{}", "{\"keys\": 7}"] {
        let opened = TokenEntitlements::new(&EntitlementOptions { keys: keys.to_owned(), ..options(&[]) });
        assert!(opened.is_err(), "{keys}");
    }
}

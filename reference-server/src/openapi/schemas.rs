//! Schemas of all bodies, derived from the wire types.

use schemars::{SchemaGenerator, generate::Contract};
use serde_json::{Map, Value};
use transcript_core::wire::{
    Problem,
    lookup::{CreateKeyResponse, KeyRequest, KeyStatus, TranscriptResult},
    search::SearchResponse,
    v1::{
        AccountInfo, BuyCreditsRequest, ChatAnswer, ChatQuestion, CreditsCheckout, ErrorBody, JobDeliveries,
        JobInfo, JobList, JobRequest, JobResults, PlanCheckout, RegisterRequest, RegisterResponse,
        RotateKeyResponse, SubscribeRequest, VerifyResponse, VideoTranscript, WebhookAck, WebhookEvent,
        WebhookSecretInfo,
    },
};

use crate::{
    api::{Health, Version},
    routes::document::schema_generator,
};

/// All schemas by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = generate(Contract::Deserialize, |generator| {
        // Required fields as in the specification; the server sends more.
        generator.subschema_for::<TranscriptResult>();
        generator.subschema_for::<KeyRequest>();
        generator.subschema_for::<RegisterRequest>();
        generator.subschema_for::<SubscribeRequest>();
        generator.subschema_for::<BuyCreditsRequest>();
        generator.subschema_for::<ChatQuestion>();
        generator.subschema_for::<JobRequest>();
    });
    schemas.append(&mut generate(Contract::Serialize, |generator| {
        generator.subschema_for::<CreateKeyResponse>();
        generator.subschema_for::<KeyStatus>();
        generator.subschema_for::<SearchResponse>();
        generator.subschema_for::<Problem>();
        generator.subschema_for::<ErrorBody>();
        generator.subschema_for::<RotateKeyResponse>();
        generator.subschema_for::<AccountInfo>();
        generator.subschema_for::<RegisterResponse>();
        generator.subschema_for::<PlanCheckout>();
        generator.subschema_for::<CreditsCheckout>();
        generator.subschema_for::<WebhookAck>();
        generator.subschema_for::<VerifyResponse>();
        generator.subschema_for::<VideoTranscript>();
        generator.subschema_for::<ChatAnswer>();
        generator.subschema_for::<JobInfo>();
        generator.subschema_for::<JobList>();
        generator.subschema_for::<JobResults>();
        generator.subschema_for::<JobDeliveries>();
        generator.subschema_for::<WebhookEvent>();
        generator.subschema_for::<WebhookSecretInfo>();
        generator.subschema_for::<Health>();
        generator.subschema_for::<Version>();
    }));
    schemas
}

fn generate(contract: Contract, add: impl Fn(&mut SchemaGenerator)) -> Map<String, Value> {
    let mut generator = schema_generator(contract);
    add(&mut generator);
    generator.take_definitions(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(name: &str, required: &[&str]) {
        let schema = &all()[name];
        assert_eq!(schema["required"], json!(required), "{name}: {schema}");
    }

    #[test]
    fn schemas_required_fields_match_specification() {
        check("Segment", &["text", "start", "duration"]);
        check("TranscriptResult", &["videoId", "available", "transcript"]);
        check("KeyObject", &["plan", "period", "used", "allowance", "remaining"]);
        check("Problem", &["type", "title", "status", "detail"]);
        assert_eq!(all()["KeyRequest"].get("required"), None);
    }

    #[test]
    fn schemas_do_not_cite_repository_documents() {
        let text = serde_json::to_string(&all()).unwrap();
        assert!(!text.contains("specification") && !text.contains("(design"), "{text}");
    }

    #[test]
    fn schemas_fields_match_specification() {
        let schemas = all();
        let names = |name: &str| {
            let mut names: Vec<_> =
                schemas[name]["properties"].as_object().unwrap().keys().cloned().collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(
            names("TranscriptResult"),
            "available chapters chunks failureMessage failureReason fromCache key language languages metadata \
             nextCursor platform requestedLanguage source totalChars transcript videoId watchUrl"
        );
        assert_eq!(names("Segment"), "duration start text words");
        assert_eq!(names("KeyObject"), "allowance period plan remaining used");
        assert_eq!(
            schemas["TranscriptResult"]["properties"]["failureReason"]["enum"],
            json!([
                "needs_verification",
                "no_captions",
                "key_allowance",
                "allowance",
                "daily_cap",
                "fair_use",
                "rate_limited",
                "fetch_error",
                "config_error"
            ])
        );
    }
}

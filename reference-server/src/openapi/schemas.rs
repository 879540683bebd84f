//! The schemas of all bodies, from the types that are put on the wire.

use schemars::{
    JsonSchema, Schema,
    generate::{Contract, SchemaSettings},
    transform::RecursiveTransform,
};
use serde_json::{Map, Value, json};
use transcript_core::wire::{
    Problem,
    lookup::{KeyCreated, KeyRequest, KeyStatus, TranscriptResult},
    v1::{
        BuyCredits, ChatAnswer, ChatQuestion, CreditsCheckout, ErrorBody, EventTaken, KeyRotated, Me,
        PlanCheckout, Register, Registered, Subscribe, Verified, VideoTranscript,
    },
};

use crate::routes::health::{Health, Version};

const FOLDER: &str = "/components/schemas";

/// All schemas by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = of(Contract::Deserialize, |generator| {
        // What a reader must find there is what the specification requires; the server sends more.
        generator.subschema_for::<TranscriptResult>();
        generator.subschema_for::<KeyRequest>();
        generator.subschema_for::<Register>();
        generator.subschema_for::<Subscribe>();
        generator.subschema_for::<BuyCredits>();
        generator.subschema_for::<ChatQuestion>();
    });
    schemas.append(&mut of(Contract::Serialize, |generator| {
        generator.subschema_for::<KeyCreated>();
        generator.subschema_for::<KeyStatus>();
        generator.subschema_for::<Problem>();
        generator.subschema_for::<ErrorBody>();
        generator.subschema_for::<KeyRotated>();
        generator.subschema_for::<Me>();
        generator.subschema_for::<Registered>();
        generator.subschema_for::<PlanCheckout>();
        generator.subschema_for::<CreditsCheckout>();
        generator.subschema_for::<EventTaken>();
        generator.subschema_for::<Verified>();
        generator.subschema_for::<VideoTranscript>();
        generator.subschema_for::<ChatAnswer>();
        generator.subschema_for::<Health>();
        generator.subschema_for::<Version>();
    }));
    schemas
}

/// A reference to the schema of a type.
pub(super) fn reference<T: JsonSchema>() -> Value {
    json!({ "$ref": format!("#{FOLDER}/{}", T::schema_name()) })
}

fn of(contract: Contract, add: impl Fn(&mut schemars::SchemaGenerator)) -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = FOLDER.into();
        settings.contract = contract;
        settings.transforms = vec![Box::new(RecursiveTransform(without_default))];
    });
    let mut generator = settings.into_generator();
    add(&mut generator);
    generator.take_definitions(true)
}

/// What our client takes an absent field for is no promise of the server.
fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, required: &[&str]) {
        let schema = &all()[name];
        assert_eq!(schema["required"], json!(required), "{name}: {schema}");
    }

    #[test]
    fn required_fields_are_those_of_the_specification() {
        check("Segment", &["text", "start", "duration"]);
        check("TranscriptResult", &["videoId", "available", "transcript"]);
        check("KeyObject", &["plan", "period", "used", "allowance", "remaining"]);
        check("Problem", &["type", "title", "status", "detail"]);
        assert_eq!(all()["KeyRequest"].get("required"), None);
    }

    #[test]
    fn readers_are_sent_to_no_document_that_they_do_not_have() {
        let text = serde_json::to_string(&all()).unwrap();
        assert!(!text.contains("specification") && !text.contains("(design"), "{text}");
    }

    #[test]
    fn fields_are_those_of_the_specification() {
        let schemas = all();
        let names = |name: &str| {
            let mut names: Vec<_> =
                schemas[name]["properties"].as_object().unwrap().keys().cloned().collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(
            names("TranscriptResult"),
            "available failureMessage failureReason fromCache key platform source transcript videoId watchUrl"
        );
        assert_eq!(names("Segment"), "duration start text");
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

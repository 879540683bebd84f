//! Units and currencies of numbers, which must agree where both texts have one.

use std::{collections::HashMap, sync::LazyLock};

use super::super::fold::fold;

/// A unit, and its words in all languages. "Pound" is a currency or a weight.
const UNITS: [(&str, &str); 17] = [
    ("am", ""),
    ("pm", ""),
    (
        "mm",
        "millimetre millimetres millimeter millimeters millimètres milímetros millimetri миллиметров миллиметра",
    ),
    (
        "cm",
        "centimetre centimetres centimeter centimeters zentimeter centimètres centímetros centimetri сантиметров \
         сантиметра",
    ),
    (
        "km",
        "kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros chilometro chilometri \
         quilômetro quilômetros quilómetros километр километра километров kilometrów kilometry",
    ),
    ("mg", "milligram milligrams milligramm milligrammes"),
    (
        "kg",
        "kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes kilogramos chilogrammi килограмм килограммов",
    ),
    ("m", "metre metres meter meters metern mètre mètres metros metri метр метра метров metrów metry"),
    ("foot", "feet ft fuß pieds piedi voet фут фута футов"),
    ("mile", "miles meile meilen milla millas miglia milhas mijl mijlen миля мили миль"),
    ("dollar", "dollars dólar dólares dollari доллар доллара долларов dolarów dolary دولار usd"),
    ("pound", "pounds pfund libras sterline pond фунт фунта фунтов funtów funty gbp"),
    ("euro", "euros евро eur"),
    ("yen", "иен иены"),
    ("percent", "prozent procent процент процента процентов procentów"),
    ("ruble", "rubles roubles rouble rubel рубль рубля рублей"),
    ("franc", "francs franken"),
];
/// Numbers before a word for feet that are those of a body: "on two feet".
const BODY_FEET_MAX: u64 = 2;

static WORDS: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let words = |(unit, words): &(&'static str, &'static str)| {
        let unit = *unit;
        // "9m" may be nine million.
        let own = Some(unit).filter(|unit| *unit != "m");
        words.split_whitespace().chain(own).map(move |word| (fold(word), unit)).collect::<Vec<_>>()
    };
    UNITS.iter().flat_map(words).collect()
});

/// The unit that a folded word is.
pub(super) fn unit(word: &str) -> Option<&'static str> {
    WORDS.get(word).copied()
}

/// The unit that a sign is.
pub(super) fn sign_unit(c: char) -> Option<&'static str> {
    Some(match c {
        '$' | '＄' => "dollar",
        '€' => "euro",
        '£' => "pound",
        '¥' | '￥' => "yen",
        '%' | '％' => "percent",
        _ => return None,
    })
}

/// The unit of a number with this value; `None` for feet that may be those of a body.
pub(super) fn unit_of_number(word: &str, form: &str) -> Option<&'static str> {
    let is_body =
        |unit: &&str| *unit == "foot" && form.parse::<u64>().is_ok_and(|value| value <= BODY_FEET_MAX);
    unit(word).filter(|unit| !is_body(unit))
}

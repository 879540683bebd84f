//! Numbers of answers against those of passages.

use proptest::prelude::*;

use super::*;

fn is_in(answer: &str, spoken: &str, language: &str) -> bool {
    let words = NumberWords::new(language);
    Amounts::new(answer, &words).are_in(&[&Amounts::new(spoken, &words)])
}

/// An answer, a passage with its numbers, and the language.
const EQUAL: &[(&str, &str, &str)] = &[
    ("900 dollars", "nine hundred dollars", "en"),
    ("nine hundred dollars", "$900", "en"),
    ("$1,000", "1000 dollars", "en"),
    ("$900,000", "900 thousand dollars", "en"),
    ("£3.5 million", "three point five million pounds", "en"),
    ("50%", "fifty percent", "en"),
    ("9 km", "nine kilometres", "en"),
    ("€900", "nine hundred", "en"),
    ("two feet", "two metres", "en"),
    ("1 000 Euro", "1.000 Euro", "de"),
    ("1’000 francs", "mille francs", "fr"),
    ("3.5 %", "3,5 percent", "en"),
    ("3.5", "three point five", "en"),
    ("$9.00", "9 dollars", "en"),
    ("1963", "nineteen sixty-three", "en"),
    ("1905", "nineteen oh five", "en"),
    ("the 19th", "the nineteenth", "en"),
    ("19th", "19", "en"),
    ("COVID-19", "covid nineteen", "en"),
    ("S23", "the s 23", "en"),
    ("900,000", "nine hundred thousand", "en"),
    ("900 thousand", "900,000", "en"),
    ("over two hundred steps", "two hundred and nine steps", "en"),
    ("more than two decades", "twenty-two years", "en"),
    ("1962", "neunzehnhundertzweiundsechzig", "de"),
    ("2000 œufs", "deux mille œufs", "fr"),
    ("1,200 metres", "一千二百米", "zh"),
    ("26年", "二十六年", "ja"),
    ("٩٠٠", "900", "ar"),
    ("９００", "900", "en"),
    ("5 m²", "5 square metres", "en"),
    ("5億円", "五億円", "ja"),
    ("500,000,000円", "5億円", "ja"),
    ("1億2000万人", "一億二千万人", "ja"),
    ("35,000", "3.5万", "zh"),
    ("20 万人", "二十万人", "zh"),
    ("5 Mio.", "5 Millionen", "de"),
    ("3,5 Mrd. Euro", "3500000000 Euro", "de"),
    ("$5bn", "5 billion dollars", "en"),
    ("3.5 million", "three point five million", "en"),
    ("1,00,000", "100000", "hi"),
    ("CO₂ and C₆H₁₂O₆", "CO2 and C6H12O6", "en"),
    ("1912년 37명", "1912년에 37명이", "ko"),
    ("120,000,000원", "1억 2천만 원", "ko"),
    ("12,000원", "1만 2000원을", "ko"),
    ("18", "between eighteen and sixty-five", "en"),
    ("15% and 20%", "fifteen and twenty percent", "en"),
    ("1965", "nineteen sixty-five", "en"),
    ("5 kg", "5kg", "en"),
    ("5kg", "five of them", "en"),
    ("at 5am", "at 5 a.m. sharp", "en"),
    ("10-20", "10 to 20", "en"),
    ("it was -5°", "minus five degrees", "en"),
    ("it was −5°", "five degrees below zero", "en"),
    ("3 point 5 million", "3,500,000", "en"),
    // An answer in French about a transcript in English.
    ("3,5 millions", "3.5 million", "en"),
    ("-3,5 millions", "minus three point five million", "en"),
    ("-5 Mio.", "minus 5 Millionen", "de"),
    ("-5度", "零下五度", "zh"),
    ("-20度", "零下二十度", "zh"),
    ("气温-5度", "零下五度", "zh"),
    ("零下5.5度", "今天气温-5.5 ℃", "zh"),
    ("零下5摄氏度", "今天气温-5摄氏度", "zh"),
    ("零下5度", "摄氏-5度", "zh"),
    ("零下5到3度", "今天气温-5到3度", "zh"),
    ("零下5度", "今天气温-5～3度", "zh"),
    ("零下10至零下5度", "今天气温-10~-5度", "zh"),
    ("零下10度", "今天气温-10至-5 ℃", "zh"),
    ("マイナス5度", "気温-5度", "ja"),
    ("マイナス5度", "気温-5から3度", "ja"),
    ("영하 5도", "기온-5도", "ko"),
    ("영하 5도", "기온-5에서 3도", "ko"),
    ("零下5度", "最低温度-5度", "zh"),
    ("10到15度", "10度-15度", "zh"),
    ("１０-１５度", "10到15度", "zh"),
    ("三到5度", "三-5度", "zh"),
    ("长征5号", "长征-5号", "zh"),
    ("歼-10华丽亮相", "歼10亮相", "zh"),
    ("-5bn", "minus 5 billion", "en"),
    ("-3.5", "minus three point five", "en"),
    ("-5", "fünf Grad unter null", "de"),
    ("-5", "cinq degrés en dessous de zéro", "fr"),
    ("-5", "min vijf graden", "nl"),
    ("-1 000 Euro", "-1000 Euro", "de"),
    ("-1000 Euro", "-1 000 Euro", "de"),
    ("au moins 5 personnes", "5 personnes", "fr"),
    ("al menos 5", "5 personas", "es"),
    ("min 5 letters", "5 letters", "en"),
    ("10 minus 5", "10 - 5", "en"),
    ("pages 10 –15", "pages 10 to 15", "en"),
    ("10公里", "10千米", "zh"),
    ("5 公斤", "5 千克", "zh"),
    ("1013 hPa", "1013百帕", "zh"),
    ("500", "500兆瓦", "zh"),
    ("15,000瓦", "1万5千瓦", "zh"),
    ("50,000", "5万一平", "zh"),
    ("200,000,000", "2亿两白银", "zh"),
    ("55,000", "5万五千", "zh"),
    ("no number at all", "", "en"),
];

#[test]
fn amounts_equal_in_any_form() {
    for (answer, spoken, language) in EQUAL {
        assert!(is_in(answer, spoken, language), "{answer} <- {spoken}");
    }
}

/// An answer, a passage without its numbers, and the language.
const UNSPOKEN: &[(&str, &str, &str)] = &[
    ("900 dollars", "nine dollars and a hundred boats", "en"),
    ("900", "9000", "en"),
    ("35", "3.5", "en"),
    ("3.5", "35", "en"),
    ("12", "1234", "en"),
    ("1,000,000", "1,000", "en"),
    ("DE89 3704 0044", "the bridge of 1912", "en"),
    ("DE89", "89", "en"),
    ("COVID-19", "covid", "en"),
    ("call +49 30 123456", "call me", "en"),
    ("nine hundred dollars", "the bridge was built", "en"),
    ("5G", "5", "en"),
    ("½", "1 2", "en"),
    ("一千二百", "一千", "zh"),
    ("1963", "nineteen sixty-four", "en"),
    ("٩٠٠", "", "ar"),
    ("nine hundred", "nine dollars and a hundred boats", "en"),
    ("nineteen hundred", "in nineteen twelve it cost nine hundred", "en"),
    ("two hundred thousand", "two million dollars and nine hundred thousand cars", "en"),
    ("two hundred", "two hundred thousand cars", "en"),
    ("20 million", "22 million", "en"),
    ("nineteen sixty", "in nineteen sixty-three", "en"),
    ("900 thousand B747", "900 thousand boats", "en"),
    ("5万円", "5億円", "ja"),
    ("5億円", "5万円で5人", "ja"),
    ("3.5亿", "3.5万", "zh"),
    ("5만 원", "5억 원", "ko"),
    ("5 Mrd.", "5 Mio.", "de"),
    ("5 crore", "5 lakh", "en"),
    ("3.5 billion", "3.5 million and 2 billion", "en"),
    ("1865", "between eighteen and sixty-five", "en"),
    ("1865", "between 18 and 65", "en"),
    ("25", "20 five-year plans", "en"),
    ("5kg", "5mg", "en"),
    ("$900", "nine hundred pounds", "en"),
    ("€3.5 million", "3.5 million dollars", "en"),
    ("900,000 euros", "£900 thousand", "en"),
    ("nine feet", "nine metres", "en"),
    ("nine miles", "9 km", "en"),
    ("12,500 %", "12,500 pounds", "en"),
    ("5 kg", "5 mg", "en"),
    ("5am", "5pm", "en"),
    ("5 a.m.", "5 p.m.", "en"),
    ("-5 degrees", "5 degrees", "en"),
    ("-5 million", "5 million", "en"),
    ("-5 million", "5 million and 0 boats", "en"),
    ("-5bn", "5 billion", "en"),
    ("minus 5 degrees", "5 degrees", "en"),
    ("minus five degrees", "5 degrees, oh well", "en"),
    ("-1 000 Euro", "1000 Euro", "de"),
    ("-5度", "5个零件", "zh"),
    ("气温-5度", "气温5度", "zh"),
    ("气温-5°C", "5°C", "zh"),
    ("气温-5到3度", "气温5到3度", "zh"),
    ("기온-5도", "기온 5도", "ko"),
    ("-15度", "10度-15度", "zh"),
    ("零下15度", "１０-１５度", "zh"),
    ("零下3度", "今天气温-5到3度", "zh"),
    ("零下20度", "歼-20", "zh"),
    ("零下五度", "五度", "zh"),
    ("10000公里", "10千米", "zh"),
    ("500兆", "500兆瓦", "zh"),
    ("30001", "3万一个月", "zh"),
];

#[test]
fn amounts_unspoken_are_found() {
    for (answer, spoken, language) in UNSPOKEN {
        assert!(!is_in(answer, spoken, language), "{answer} <- {spoken}");
    }
}

#[test]
fn amounts_other_units_and_signs_are_found() {
    let units = ["am", "pm", "mm", "cm", "km", "mg", "kg"];
    for (unit, other) in units.iter().flat_map(|unit| units.map(|other| (unit, other))) {
        for (answer, spoken) in [("7", "7"), ("-7", "-7"), ("7 ", "7"), ("7", "seven "), ("1 000", "1000")] {
            let (answer, spoken) = (format!("{answer}{unit}"), format!("{spoken}{other}"));
            assert_eq!(is_in(&answer, &spoken, "en"), *unit == other, "{answer} <- {spoken}");
        }
    }
    for sign in ["-", "−", "–", "－", "﹣", "minus ", "negative ", "零下"] {
        let answer = format!("{sign}7 degrees");
        assert!(!is_in(&answer, "7 degrees", "en"), "{answer}");
        for spoken in ["-7", "minus seven", "seven degrees below zero", "7 under 0", "零下七度"] {
            assert!(is_in(&answer, spoken, "en"), "{answer} <- {spoken}");
        }
    }
}

#[test]
fn amounts_written_numbers_have_their_words() {
    for (language, text, expect) in [
        ("en", "some 1,200 boats", &["1200: 1 200"][..]),
        ("en", "on the 19th", &["19: 19th"]),
        ("en", "in nineteen eighty four", &["1984: nineteen eighty four"]),
        ("en", "nineteen oh five", &["1905: nineteen oh five"]),
        ("en", "nine or one", &[]),
        ("en", "between 18 and 65", &["18: 18", "65: 65"]),
        ("en", "some 900 thousand boats", &["900000: 900 thousand"]),
        ("es", "dos mil nueve", &["2009: dos mil nueve"]),
        ("ja", "靴が六十二足", &["62: 六十二"]),
    ] {
        let words: Vec<String> = match language {
            "ja" => vec!["靴".to_owned(), "六十二".to_owned()],
            _ => text.split([' ', ',']).map(str::to_owned).collect(),
        };
        let numbers = Amounts::new(text, &NumberWords::new(language)).numbers();
        let found: Vec<String> = numbers
            .iter()
            .map(|number| {
                let of_number = words.iter().filter(|word| number.has(word)).map(String::as_str);
                format!("{}: {}", number.form, of_number.collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert_eq!(found, expect, "{text}");
    }
}

proptest! {
    #[test]
    fn amounts_of_text_are_in_text(text in "([a-z0-9,.' 十万만년½²₂-]|5kg| 7 ?mg| -5|minus | pounds|[$€%] ?|below zero|零下|千米|一){0,40}") {
        prop_assert!(is_in(&text, &text, "en"));
    }

    #[test]
    fn amounts_any_text_does_not_panic(text in "\\PC{0,60}", other in "\\PC{0,40}") {
        is_in(&text, &other, "de");
    }
}

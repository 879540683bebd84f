//! Numbers written as words, in the languages whose words are listed here, and in Chinese characters.

/// Value of each word, folded. The words of a language that joins them (`neunzehnhundert`) are its parts.
const LEXICONS: [(&str, &str); 8] = [
    (
        "en",
        "zero=0 oh=0 one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 \
         dozen=12 thirteen=13 fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20 \
         thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 hundred=100 thousand=1000 \
         million=1000000 billion=1000000000 trillion=1000000000000 bn=1000000000 \
         lakh=100000 lakhs=100000 crore=10000000 crores=10000000 first=1 second=2 third=3 fourth=4 fifth=5 \
         sixth=6 seventh=7 eighth=8 ninth=9 tenth=10 eleventh=11 twelfth=12 thirteenth=13 fourteenth=14 \
         fifteenth=15 sixteenth=16 seventeenth=17 eighteenth=18 nineteenth=19 twentieth=20 thirtieth=30 hundredth=100",
    ),
    (
        "de",
        "null=0 ein=1 eins=1 eine=1 einem=1 einen=1 einer=1 zwei=2 drei=3 vier=4 funf=5 sechs=6 sieben=7 acht=8 neun=9 \
         zehn=10 elf=11 zwolf=12 dreizehn=13 vierzehn=14 funfzehn=15 sechzehn=16 siebzehn=17 achtzehn=18 neunzehn=19 \
         zwanzig=20 dreissig=30 vierzig=40 funfzig=50 sechzig=60 siebzig=70 achtzig=80 neunzig=90 hundert=100 \
         tausend=1000 million=1000000 millionen=1000000 milliarde=1000000000 milliarden=1000000000 \
         billion=1000000000000 billionen=1000000000000 tsd=1000 mio=1000000 mrd=1000000000 erste=1 zweite=2 \
         dritte=3 vierte=4 vierten=4 funfte=5 sechste=6 siebte=7 achte=8 neunte=9 zehnte=10",
    ),
    (
        "fr",
        "zero=0 un=1 une=1 deux=2 trois=3 quatre=4 cinq=5 six=6 sept=7 huit=8 neuf=9 dix=10 onze=11 douze=12 treize=13 \
         quatorze=14 quinze=15 seize=16 vingt=20 vingts=20 trente=30 quarante=40 cinquante=50 soixante=60 \
         septante=70 huitante=80 octante=80 nonante=90 cent=100 cents=100 mille=1000 million=1000000 \
         millions=1000000 milliard=1000000000 milliards=1000000000 billion=1000000000000 \
         billions=1000000000000 premier=1 premiere=1 deuxieme=2 troisieme=3 \
         quatrieme=4 cinquieme=5",
    ),
    (
        "es",
        "cero=0 un=1 uno=1 una=1 dos=2 tres=3 cuatro=4 cinco=5 seis=6 siete=7 ocho=8 nueve=9 diez=10 once=11 doce=12 \
         trece=13 catorce=14 quince=15 dieciseis=16 diecisiete=17 dieciocho=18 diecinueve=19 veinte=20 veintiun=21 \
         veintiuno=21 veintiuna=21 veintidos=22 veintitres=23 veinticuatro=24 veinticinco=25 veintiseis=26 \
         veintisiete=27 veintiocho=28 veintinueve=29 treinta=30 cuarenta=40 cincuenta=50 sesenta=60 setenta=70 \
         ochenta=80 noventa=90 cien=100 ciento=100 doscientos=200 doscientas=200 trescientos=300 trescientas=300 \
         cuatrocientos=400 cuatrocientas=400 quinientos=500 quinientas=500 seiscientos=600 seiscientas=600 \
         setecientos=700 setecientas=700 ochocientos=800 ochocientas=800 novecientos=900 novecientas=900 mil=1000 \
         millon=1000000 millones=1000000 billon=1000000000000 billones=1000000000000",
    ),
    (
        "it",
        "zero=0 un=1 uno=1 una=1 due=2 tre=3 quattro=4 cinque=5 sei=6 sette=7 otto=8 nove=9 dieci=10 undici=11 dodici=12 \
         tredici=13 quattordici=14 quindici=15 sedici=16 diciassette=17 diciotto=18 diciannove=19 venti=20 ventuno=21 \
         ventotto=28 trenta=30 trentuno=31 trentotto=38 quaranta=40 cinquanta=50 sessanta=60 settanta=70 ottanta=80 \
         novanta=90 cento=100 mille=1000 mila=1000 milione=1000000 milioni=1000000 miliardo=1000000000 \
         miliardi=1000000000 mln=1000000 mld=1000000000",
    ),
    (
        "pt",
        "zero=0 um=1 uma=1 dois=2 duas=2 tres=3 quatro=4 cinco=5 seis=6 sete=7 oito=8 nove=9 dez=10 onze=11 doze=12 \
         treze=13 catorze=14 quatorze=14 quinze=15 dezesseis=16 dezasseis=16 dezessete=17 dezassete=17 dezoito=18 \
         dezenove=19 dezanove=19 vinte=20 trinta=30 quarenta=40 cinquenta=50 sessenta=60 setenta=70 oitenta=80 \
         noventa=90 cem=100 cento=100 duzentos=200 duzentas=200 trezentos=300 trezentas=300 quatrocentos=400 \
         quinhentos=500 seiscentos=600 setecentos=700 oitocentos=800 novecentos=900 mil=1000 milhao=1000000 \
         milhoes=1000000 bilhao=1000000000 bilhoes=1000000000",
    ),
    (
        "nl",
        "nul=0 een=1 twee=2 drie=3 vier=4 vijf=5 zes=6 zeven=7 acht=8 negen=9 tien=10 elf=11 twaalf=12 dertien=13 \
         veertien=14 vijftien=15 zestien=16 zeventien=17 achttien=18 negentien=19 twintig=20 dertig=30 veertig=40 \
         vijftig=50 zestig=60 zeventig=70 tachtig=80 negentig=90 honderd=100 duizend=1000 miljoen=1000000 \
         miljard=1000000000 mln=1000000 mld=1000000000",
    ),
    (
        "ru",
        "ноль=0 нуля=0 один=1 одна=1 два=2 две=2 три=3 четыре=4 пять=5 шесть=6 семь=7 восемь=8 девять=9 десять=10 \
         одиннадцать=11 двенадцать=12 тринадцать=13 четырнадцать=14 пятнадцать=15 шестнадцать=16 семнадцать=17 \
         восемнадцать=18 девятнадцать=19 двадцать=20 тридцать=30 сорок=40 пятьдесят=50 шестьдесят=60 семьдесят=70 \
         восемьдесят=80 девяносто=90 сто=100 двести=200 триста=300 четыреста=400 пятьсот=500 шестьсот=600 семьсот=700 \
         восемьсот=800 девятьсот=900 тысяча=1000 тысячи=1000 тысяч=1000 миллион=1000000 миллиона=1000000 \
         миллионов=1000000 миллиард=1000000000 миллиарда=1000000000 миллиардов=1000000000 тыс=1000 \
         млн=1000000 млрд=1000000000",
    ),
];

/// Words inside a number, between its parts: `two hundred and nine`, `zweiundzwanzig`, `treinta y uno`.
const CONNECTORS: [&str; 6] = ["and", "und", "et", "y", "e", "en"];
/// Words for a decimal point.
const POINTS: [&str; 7] = ["point", "komma", "virgule", "coma", "virgola", "virgula", "запятая"];
/// Words before a negative number; in Dutch also "min".
const MINUS_WORDS: [&str; 7] = ["minus", "negative", "moins", "menos", "meno", "минус", "eksi"];
/// Words before these with which they are no sign: "au moins", "al menos", "plus or minus".
const MINUS_PHRASES: [&str; 10] = ["au", "al", "du", "lo", "ao", "pelo", "or", "oder", "ou", "o"];
/// Words between a negative number and zero: "five degrees below zero".
const BELOW_WORDS: [&str; 11] =
    ["below", "under", "unter", "sous", "dessous", "sotto", "bajo", "debajo", "abaixo", "onder", "ниже"];
/// Words between the hour and the minutes of a clock time.
const CLOCK_WORDS: &str = "o clock hour hours minute minutes uhr stunde stunden minuten heure heures hora horas minuto \
    minutos ora ore minuti uur uren minuut час часа часов минута минуту минуты минут";
/// Shortest word that is split into parts.
const JOINED_LETTERS_MIN: usize = 6;

/// The number words of one language.
#[derive(Clone, Debug, Default)]
pub(in crate::chat) struct NumberWords {
    /// Words with their values, longest first. Few enough to search one by one.
    words: Vec<(String, u64)>,
    /// Whether units precede tens, as in `zweiundzwanzig`.
    has_units_first: bool,
    /// Whether tens are counted in twenties, as in `quatre-vingts`.
    has_twenties: bool,
    /// Whether "min" is a minus sign, as in Dutch; elsewhere it is short for minutes and minimum.
    has_min: bool,
}

impl NumberWords {
    /// The words of a language by its primary tag; none for a language without a list.
    pub(in crate::chat) fn new(primary: &str) -> Self {
        let listed =
            LEXICONS.iter().find(|(language, _)| *language == primary).map_or("", |(_, words)| words);
        let parse = |entry: &str| {
            let (word, value) = entry.split_once('=')?;
            Some((super::super::fold::fold(word), value.parse().ok()?))
        };
        let mut words: Vec<(String, u64)> = listed.split_whitespace().filter_map(parse).collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        Self {
            words,
            has_units_first: matches!(primary, "de" | "nl"),
            has_twenties: primary == "fr",
            has_min: primary == "nl",
        }
    }

    /// Values of a folded word: one, several for a joined word, none if it is no number.
    pub(in crate::chat) fn values(&self, word: &str) -> Vec<u64> {
        if let Some((_, value)) = self.words.iter().find(|(known, _)| known == word) {
            return vec![*value];
        }
        let (mut rest, mut values) = (word, Vec::new());
        while !rest.is_empty() && word.len() >= JOINED_LETTERS_MIN {
            let part = self.words.iter().find_map(|(known, value)| {
                rest.strip_prefix(known.as_str()).map(|rest| (rest, Some(*value)))
            });
            let connector =
                || ["und", "en"].iter().find_map(|joint| rest.strip_prefix(joint)).map(|rest| (rest, None));
            match part.or_else(connector) {
                Some((after, value)) => {
                    values.extend(value);
                    rest = after;
                }
                None => return Vec::new(),
            }
        }
        values
    }

    /// Whether a folded word is a minus sign.
    pub(super) fn is_minus(&self, word: &str) -> bool {
        MINUS_WORDS.contains(&word) || (self.has_min && word == "min")
    }

    /// The number that a folded word is, written with digits or as a word; `None` for several numbers, and for a word
    /// that is rarely a number.
    pub(in crate::chat) fn number(&self, word: &str) -> Option<u64> {
        if is_rarely_number(word) {
            return None;
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return word.parse().ok();
        }
        let mut builder = NumberBuilder::default();
        let is_one = self.values(word).into_iter().all(|value| builder.add(value, self).is_none());
        builder.finish().filter(|_| is_one)
    }
}

/// Whether a folded number word has another meaning in most texts: "wait a second", "oh".
pub(in crate::chat) fn is_rarely_number(word: &str) -> bool {
    matches!(word, "second" | "oh")
}

/// Whether a folded word connects the parts of a number.
pub(super) fn is_connector(word: &str) -> bool {
    CONNECTORS.contains(&word)
}

/// Whether a folded word is a decimal point.
pub(super) fn is_point(word: &str) -> bool {
    POINTS.contains(&word)
}

/// Whether a sign in words is none behind this folded word: "au moins".
pub(super) fn is_minus_phrase(before: &str) -> bool {
    MINUS_PHRASES.contains(&before)
}

/// Whether a number is negative if this folded word and zero follow it.
pub(super) fn is_below(word: &str) -> bool {
    BELOW_WORDS.contains(&word)
}

/// Whether a folded word stands between the hour and the minutes of a clock time: "ten o'clock thirty".
pub(super) fn is_clock_word(word: &str) -> bool {
    CLOCK_WORDS.split(' ').any(|known| known == word)
}

/// A number under construction from the values of its words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberBuilder {
    total: u64,
    group: u64,
    is_begun: bool,
}

impl NumberBuilder {
    /// Adds the value of the next word; returns the finished number if the word begins another one.
    pub(super) fn add(&mut self, value: u64, words: &NumberWords) -> Option<u64> {
        let rest = self.group % 100;
        let next = match value {
            _ if !self.is_begun => None,
            100 if self.group < 100 => Some(self.group.max(1).saturating_mul(100)),
            20 if words.has_twenties && rest == 4 => Some(self.group - 4 + 80),
            1..=99 if self.group > 0 && rest == 0 => Some(self.group + value),
            1..=9 if rest >= 20 && rest.is_multiple_of(10) => Some(self.group + value),
            // Soixante-dix and quatre-vingt-dix.
            10..=19 if words.has_twenties && matches!(rest, 60 | 80) => Some(self.group + value),
            20..=90 if words.has_units_first && (1..=9).contains(&rest) && value.is_multiple_of(10) => {
                Some(self.group + value)
            }
            1..=999 if self.group == 0 && self.total > 0 => Some(value),
            1_000.. => {
                let (group, total) = (self.group.max(u64::from(self.total == 0)), self.total);
                self.total = match total > 0 && total < value {
                    true => (total + group).saturating_mul(value),
                    false => total.saturating_add(group.saturating_mul(value)),
                };
                Some(0)
            }
            _ => None,
        };
        match next {
            Some(group) => {
                self.group = group;
                None
            }
            None => {
                let finished = self.finish();
                self.is_begun = true;
                match value {
                    1_000.. => self.total = value,
                    _ => self.group = value,
                }
                finished
            }
        }
    }

    /// Whether a number is under construction.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Returns the number and resets the builder.
    pub(super) fn finish(&mut self) -> Option<u64> {
        let Self { total, group, is_begun } = std::mem::take(self);
        is_begun.then(|| total.saturating_add(group))
    }
}

/// Value of a Chinese numeral: a digit, or a unit from 10 on.
pub(super) fn ideograph(c: char) -> Option<u64> {
    Some(match c {
        '〇' | '零' => 0,
        '一' | '壱' => 1,
        '二' | '两' | '兩' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        '十' => 10,
        '百' => 100,
        '千' => 1_000,
        '万' | '萬' => 10_000,
        '亿' | '億' => 100_000_000,
        '兆' => 1_000_000_000_000,
        _ => return None,
    })
}

/// Whether a character is a Chinese numeral.
pub(super) fn is_ideograph(c: char) -> bool {
    ideograph(c).is_some()
}

/// The number that a run of Chinese numerals is, as digits; the run itself if it is none.
///
/// Digits may precede each numeral, with a point before decimals: `3.5万`.
pub(super) fn ideographs(run: &str) -> String {
    let values: Vec<u64> = run.chars().filter_map(ideograph).collect();
    if values.iter().all(|value| *value < 10) && run.chars().all(is_ideograph) {
        return values.iter().map(u64::to_string).collect();
    }
    millionths_of_run(run).map_or_else(|| run.to_owned(), digits_of)
}

/// A number in digits, with a point before decimals, times a whole one.
pub(super) fn product(digits: &str, scale: u64) -> Option<String> {
    millionths(digits)?.checked_mul(scale.into()).map(digits_of)
}

const MILLIONTHS: u128 = 1_000_000;

fn millionths_of_run(run: &str) -> Option<u128> {
    // The groups above the current one, the current one, and its number before the next unit.
    let (mut total, mut section, mut number) = (0_u128, 0_u128, None);
    let mut rest = run;
    while let Some(c) = rest.chars().next() {
        let Some(value) = ideograph(c) else {
            let end = rest.find(is_ideograph).unwrap_or(rest.len());
            let (digits, after) = rest.split_at_checked(end)?;
            number = Some(millionths(digits)?);
            rest = after;
            continue;
        };
        rest = rest.get(c.len_utf8()..)?;
        let value = u128::from(value);
        match value {
            0..=9 => number = Some(value * MILLIONTHS),
            10..=1_000 => {
                let product = number.take().unwrap_or(MILLIONTHS).checked_mul(value)?;
                section = section.checked_add(product)?;
            }
            _ => {
                // 三万五千億
                let is_multiplied = total > 0 && total < value.checked_mul(MILLIONTHS)?;
                let implied = if section == 0 && !is_multiplied { MILLIONTHS } else { 0 };
                let below = std::mem::take(&mut section).checked_add(number.take().unwrap_or(implied))?;
                total = match is_multiplied {
                    true => total.checked_add(below)?.checked_mul(value)?,
                    false => total.checked_add(below.checked_mul(value)?)?,
                };
            }
        }
    }
    total.checked_add(section)?.checked_add(number.unwrap_or(0))
}

fn millionths(digits: &str) -> Option<u128> {
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{decimals:0<6}");
    if whole.is_empty() || decimals.len() > 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn digits_of(millionths: u128) -> String {
    let (whole, decimals) = (millionths / MILLIONTHS, format!("{:06}", millionths % MILLIONTHS));
    match decimals.trim_end_matches('0') {
        "" => whole.to_string(),
        decimals => format!("{whole}.{decimals}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(primary: &str, text: &str) -> Vec<u64> {
        let (words, mut builder, mut found) =
            (NumberWords::new(primary), NumberBuilder::default(), Vec::new());
        for word in text.split(' ').filter(|word| !is_connector(word)) {
            for value in words.values(word) {
                found.extend(builder.add(value, &words));
            }
        }
        found.extend(builder.finish());
        found
    }

    #[test]
    fn number_words_have_their_value() {
        for (language, text, expect) in [
            ("en", "nine hundred", &[900][..]),
            ("en", "two hundred and nine", &[209]),
            ("en", "nineteen sixty three", &[19, 63]),
            ("en", "two thousand five", &[2_005]),
            ("en", "a hundred thousand", &[100_000]),
            ("en", "three million two hundred thousand", &[3_200_000]),
            ("en", "one two three", &[1, 2, 3]),
            ("de", "neunzehnhundertzweiundsechzig", &[1_962]),
            ("de", "dreitausendvierhundert", &[3_400]),
            ("de", "funfundneunzig", &[95]),
            ("fr", "deux mille", &[2_000]),
            ("fr", "mille neuf cent quatre vingt dix sept", &[1_997]),
            ("es", "mil novecientos sesenta y tres", &[1_963]),
            ("it", "duemila", &[2_000]),
            ("nl", "tweeentwintig", &[22]),
            ("ru", "тысяча девятьсот двенадцать", &[1_912]),
            ("en", "the pier", &[]),
        ] {
            assert_eq!(numbers(language, text), expect, "{text}");
        }
        for (language, word, expect) in [
            ("en", "nine", Some(9)),
            ("en", "9", Some(9)),
            ("de", "neunzehnhundertzweiundsechzig", Some(1_962)),
            ("en", "pier", None),
            ("en", "second", None),
            ("xx", "nine", None),
            ("en", "99999999999999999999", None),
        ] {
            assert_eq!(NumberWords::new(language).number(word), expect, "{word}");
        }
        for (run, expect) in [
            ("一千二百", "1200"),
            ("二十六", "26"),
            ("十", "10"),
            ("一九六三", "1963"),
            ("三万五千", "35000"),
            ("八", "8"),
            ("三万五千億", "3500000000000"),
            ("5万亿", "5000000000000"),
            ("0.5万", "5000"),
            ("1億2000万", "120000000"),
            ("3.5万", "35000"),
            ("1.2.3万", "1.2.3万"),
        ] {
            assert_eq!(ideographs(run), expect, "{run}");
        }
    }
}

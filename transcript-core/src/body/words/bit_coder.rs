//! Adaptive arithmetic coding of bits: the less surprising a bit is, the less space it takes.
//!
//! A [`BitCoder`] encodes or decodes, so that one function describes both directions of a form.

/// Accuracy of a chance in bits.
const CHANCE_BITS: u32 = 24;
/// Bits after which a chance follows at a constant rate.
const RATE_MAX: u32 = 250;
/// Numbers with more digits than this have digits that are not predicted.
const TREE_DIGITS_MAX: u32 = 11;
/// Lengths of numbers in binary digits after the first.
const LENGTHS: usize = 64;
/// Bytes after the end that a complete form lets the decoder read.
const PADDING: u32 = 3;

/// How likely the next bit in one context is set, by the bits before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    of_set: u32,
    count: u32,
}

impl Default for Chance {
    fn default() -> Self {
        Self { of_set: 1 << (CHANCE_BITS - 1), count: 0 }
    }
}

impl Chance {
    /// Divides a range: a set bit takes what is at most the result.
    fn split(self, low: u32, high: u32) -> u32 {
        let set = (u64::from(high - low) * u64::from(self.of_set)) >> CHANCE_BITS;
        low + set as u32
    }

    fn update(&mut self, bit: bool) {
        let rate = self.count + 2;
        if bit {
            self.of_set += ((1 << CHANCE_BITS) - 1 - self.of_set) / rate;
        } else {
            self.of_set -= self.of_set / rate;
        }
        self.count = (self.count + 1).min(RATE_MAX);
    }
}

/// Encodes or decodes bits.
pub(super) trait BitCoder {
    /// Encodes this bit and returns it; a decoder returns the decoded one instead.
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool;

    /// Encodes this number, below 2^63, and returns it; a decoder returns the decoded one instead.
    fn number(&mut self, numbers: &mut Numbers, context: usize, number: u64) -> u64 {
        let value = number.saturating_add(1);
        let mut length = 0;
        while length < LENGTHS - 1 {
            let Some(chance) = numbers.lengths.get_mut(context * LENGTHS + length) else { break };
            if !self.bit(chance, length < value.ilog2() as usize) {
                break;
            }
            length += 1;
        }
        let mut decoded = 1;
        for shift in (0..length).rev() {
            let is_set = self.bit(numbers.digit(length as u32, decoded), value >> shift & 1 == 1);
            decoded = decoded << 1 | u64::from(is_set);
        }
        decoded - 1
    }
}

/// Chances of the binary digits of numbers of one kind.
#[derive(Debug)]
pub(super) struct Numbers {
    /// For each context and length, whether the number is longer.
    lengths: Vec<Chance>,
    /// For each length a tree of the digits; the first element is that of unpredicted digits.
    digits: Vec<Chance>,
}

impl Numbers {
    /// Numbers whose length is predicted separately in each context, of which there is at least one.
    pub(super) fn new(contexts: usize) -> Self {
        Self { lengths: vec![Chance::default(); contexts * LENGTHS], digits: vec![Chance::default()] }
    }

    /// The chance of the digit that follows these ones in a number of this length.
    fn digit(&mut self, length: u32, before: u64) -> &mut Chance {
        let index = if length > TREE_DIGITS_MAX { 0 } else { 1 << length | before as usize };
        if self.digits.len() <= index {
            self.digits.resize(2 << length, Chance::default());
        }
        &mut self.digits[index]
    }
}

/// Encodes bits.
#[derive(Debug)]
pub(super) struct Encoder {
    low: u32,
    high: u32,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Creates an encoder that appends to these bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { low: 0, high: u32::MAX, bytes }
    }

    /// The bytes, of which the last completes all bits.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // The first bytes of both differ: the next number is in the range whatever follows.
        self.bytes.push((self.low >> 24) as u8 + 1);
        self.bytes
    }
}

impl BitCoder for Encoder {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        let split = chance.split(self.low, self.high);
        (self.low, self.high) = if bit { (self.low, split) } else { (split + 1, self.high) };
        while self.low >> 24 == self.high >> 24 {
            self.bytes.push((self.low >> 24) as u8);
            (self.low, self.high) = (self.low << 8, self.high << 8 | 0xFF);
        }
        chance.update(bit);
        bit
    }
}

/// Decodes bits. After the end of the bytes it decodes zeros, which [`Self::is_complete`] detects.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    low: u32,
    high: u32,
    value: u32,
    rest: &'a [u8],
    padding: u32,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder of these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { low: 0, high: u32::MAX, value: 0, rest: bytes, padding: 0 };
        (0..4).for_each(|_| decoder.take_byte());
        decoder
    }

    /// Whether the bytes decoded are those of an encoder, none more and none less.
    pub(super) fn is_complete(&self) -> bool {
        self.rest.is_empty() && self.padding == PADDING
    }

    fn take_byte(&mut self) {
        let byte = match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                *byte
            }
            None => {
                self.padding = self.padding.saturating_add(1);
                0
            }
        };
        self.value = self.value << 8 | u32::from(byte);
    }
}

impl BitCoder for Decoder<'_> {
    fn bit(&mut self, chance: &mut Chance, _: bool) -> bool {
        let split = chance.split(self.low, self.high);
        let bit = self.value <= split;
        (self.low, self.high) = if bit { (self.low, split) } else { (split + 1, self.high) };
        while self.low >> 24 == self.high >> 24 {
            (self.low, self.high) = (self.low << 8, self.high << 8 | 0xFF);
            self.take_byte();
        }
        chance.update(bit);
        bit
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(bits: &[(u8, bool)], numbers: &[u64]) -> Vec<u8> {
        let (mut chances, mut model) = ([Chance::default(); 4], Numbers::new(1));
        let mut encoder = Encoder::new(Vec::new());
        for (context, bit) in bits {
            encoder.bit(&mut chances[usize::from(*context)], *bit);
        }
        for number in numbers {
            encoder.number(&mut model, 0, *number);
        }
        encoder.finish()
    }

    /// Bits and numbers of an encoded form; `None` if it is not complete after them.
    fn decode(bytes: &[u8], contexts: &[(u8, bool)], count: usize) -> Option<(Vec<bool>, Vec<u64>)> {
        let (mut chances, mut model) = ([Chance::default(); 4], Numbers::new(1));
        let mut decoder = Decoder::new(bytes);
        let bits = contexts.iter().map(|context| decoder.bit(&mut chances[usize::from(context.0)], false));
        let bits = bits.collect();
        let numbers = (0..count).map(|_| decoder.number(&mut model, 0, 0)).collect();
        decoder.is_complete().then_some((bits, numbers))
    }

    proptest! {
        #[test]
        fn bits_and_numbers_encoded_decode_to_equal_ones(
            bits in proptest::collection::vec((0_u8..4, any::<bool>()), 0..900),
            numbers in proptest::collection::vec(prop_oneof![0..9_u64, 0..9_000_u64, 0..1_u64 << 63], 0..90),
        ) {
            let bytes = encode(&bits, &numbers);
            let bare: Vec<bool> = bits.iter().map(|bit| bit.1).collect();
            prop_assert_eq!(decode(&bytes, &bits, numbers.len()), Some((bare, numbers.clone())));
            let longer = [bytes.as_slice(), &[0]].concat();
            prop_assert_eq!(decode(&longer, &bits, numbers.len()), None);
            prop_assert_ne!(decode(&bytes[..bytes.len() - 1], &bits, numbers.len()), decode(&bytes, &bits, numbers.len()));
        }
    }

    #[test]
    fn bits_expected_take_little_space() {
        let bits: Vec<(u8, bool)> = (0..10_000_u16).map(|index| (0, index % 100 == 7)).collect();
        // The entropy of one in a hundred is 0.081 bits.
        assert!((95..115).contains(&encode(&bits, &[]).len()), "{}", encode(&bits, &[]).len());
        let numbers: Vec<u64> = (0..10_000).map(|index| 40 + index * index % 7 % 4).collect();
        assert!(encode(&[], &numbers).len() < 2_600);
        assert_eq!(encode(&[], &[]).len(), 1);
    }
}

//! Numbers as bytes: small ones are short.

/// Zigzag encoding: moves the sign to the last bit, so that numbers near zero are small.
pub fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The number that [`zigzag`] encoded.
pub fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Appends a number below 2^63, seven bits in a byte, the lowest first.
pub fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number of [`push_number`] from the front. `None` if there is none.
pub fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn number_encoded_decodes_to_equal_number(number in any::<i64>()) {
            // Differences of times are far below 62 bits.
            let number = number >> 2;
            let mut bytes = Vec::new();
            push_number(&mut bytes, zigzag(number));
            let mut residual = bytes.as_slice();
            prop_assert_eq!(take_number(&mut residual).map(unzigzag), Some(number));
            prop_assert!(residual.is_empty());
        }
    }
}

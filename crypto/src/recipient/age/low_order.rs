//! Points of low order on Curve25519.
//!
//! X25519 with one of them gives zero whatever the secret scalar, that is: a "secret" that everybody knows. RFC 7748
//! leaves it to the protocol to refuse that; the crates below either panic on it or accept it, so it is refused here.

/// The u-coordinates of low order, and those that are equal to one of them modulo p = 2^255 - 19: every encoding below
/// 2^255 for which X25519 gives zero. Clamped scalars are multiples of 8, so none of order 2, 4 or 8 gets through.
const COORDINATES: [[u8; 32]; 7] = [
    filled(0x00, 0x00, 0x00),
    filled(0x01, 0x00, 0x00),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04,
        0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
    ],
    filled(0xec, 0xff, 0x7f),
    filled(0xed, 0xff, 0x7f),
    filled(0xee, 0xff, 0x7f),
];

/// Whether X25519 with `point` gives zero. `point` is public, so this need not take constant time.
pub(super) fn is_low_order(point: &[u8; 32]) -> bool {
    let mut coordinate = *point;
    // RFC 7748 section 5: the highest bit is not looked at.
    coordinate[31] &= 0x7f;
    COORDINATES.contains(&coordinate)
}

const fn filled(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_values_of_the_highest_bit_are_found() {
        for coordinate in COORDINATES {
            for bit in [0x00, 0x80] {
                let mut point = coordinate;
                point[31] |= bit;
                assert!(is_low_order(&point), "{point:02x?}");
            }
        }
    }

    #[test]
    fn the_base_point_and_neighbours_are_none() {
        for point in [filled(9, 0, 0), filled(2, 0, 0), filled(0xeb, 0xff, 0x7f), filled(0xef, 0xff, 0x7f)] {
            assert!(!is_low_order(&point), "{point:02x?}");
        }
    }
}

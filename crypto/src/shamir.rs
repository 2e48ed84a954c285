//! Shamir's secret sharing as stock tools do it: byte by byte over GF(2⁸) with the reduction polynomial 0x11B.
//!
//! A share is the secret's length and one byte more: `y₁ … yₙ x`. The secret stands at `x = 0` of a polynomial of
//! degree `threshold - 1` whose other coefficients are fresh random bytes for each secret byte, so that fewer shares
//! say nothing about it. Arithmetic has no branch or index that depends on a secret.

use zeroize::Zeroizing;

use crate::secret::SecretBytes;

/// Splits `secret` into `count` shares of which any `threshold` bring it back; `x` runs from 1.
///
/// # Panics
/// When `threshold` is not within 2 and `count`, or `count` is beyond 255: callers have checked both.
pub fn split(secret: &SecretBytes, count: usize, threshold: usize) -> Vec<SecretBytes> {
    assert!((2..=count).contains(&threshold) && count <= 255, "checked when recipients are gathered");
    let length = secret.len();
    let mut coefficients = Zeroizing::new(vec![0; length * (threshold - 1)]);
    getrandom::fill(&mut coefficients).expect("the operating system provides randomness");
    let share = |x: u8| {
        let mut bytes: Vec<u8> = secret
            .expose_secret()
            .iter()
            .zip(coefficients.chunks_exact(threshold - 1))
            .map(|(byte, higher)| {
                multiply(higher.iter().rev().fold(0, |sum, next| multiply(sum, x) ^ next), x) ^ byte
            })
            .collect();
        bytes.push(x);
        SecretBytes::new(bytes)
    };
    (1..=count).map(|x| share(x as u8)).collect()
}

/// Interpolates the secret from shares; nothing when they are of different lengths, too short, or two have one `x`.
pub fn combine(shares: &[SecretBytes]) -> Option<SecretBytes> {
    let length = shares.first()?.len().checked_sub(1).filter(|length| *length > 0)?;
    if shares.len() < 2 || shares.iter().any(|share| share.len() != length + 1) {
        return None;
    }
    let xs: Vec<u8> = shares.iter().map(|share| share.expose_secret()[length]).collect();
    if (0..xs.len()).any(|index| xs[index] == 0 || xs[index + 1..].contains(&xs[index])) {
        return None;
    }
    let mut secret = vec![0; length];
    for (index, share) in shares.iter().enumerate() {
        let others = xs.iter().enumerate().filter(|(other, _)| *other != index);
        let weight = others.fold(1, |weight, (_, x)| multiply(weight, multiply(*x, inverse(*x ^ xs[index]))));
        secret.iter_mut().zip(share.expose_secret()).for_each(|(byte, y)| *byte ^= multiply(weight, *y));
    }
    Some(SecretBytes::new(secret))
}

/// Product in the field, by shift and masked add.
fn multiply(mut left: u8, mut right: u8) -> u8 {
    let mut product = 0;
    for _ in 0..8 {
        product ^= left & (right & 1).wrapping_neg();
        left = (left << 1) ^ (0x1b & (left >> 7).wrapping_neg());
        right >>= 1;
    }
    product
}

/// `a⁻¹ = a²⁵⁴`; zero for zero.
fn inverse(byte: u8) -> u8 {
    let mut power = byte;
    let mut result = 1;
    for _ in 0..7 {
        power = multiply(power, power);
        result = multiply(result, power);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_inverse() {
        assert!((1..=255).all(|byte| multiply(byte, inverse(byte)) == 1));
        assert_eq!(multiply(0x57, 0x83), 0xc1);
    }

    #[test]
    fn any_threshold_of_shares_brings_the_secret_back_and_fewer_do_not() {
        let secret = SecretBytes::new((0..32).collect());
        let shares = split(&secret, 5, 3);
        assert!(
            shares.iter().enumerate().all(|(index, share)| share.expose_secret()[32] as usize == index + 1)
        );
        for picked in [[0, 1, 2], [4, 2, 0], [1, 3, 4]] {
            let picked = picked.map(|index| shares[index].clone());
            assert_eq!(combine(&picked), Some(secret.clone()));
        }
        assert_ne!(combine(&shares[..2]), Some(secret));
    }

    #[test]
    fn shares_that_do_not_belong_together_are_refused() {
        let share = |bytes: &[u8]| SecretBytes::new(bytes.to_vec());
        assert!(combine(&[]).is_none());
        assert!(combine(&[share(&[1, 1])]).is_none());
        assert!(combine(&[share(&[1, 1]), share(&[2, 1])]).is_none());
        assert!(combine(&[share(&[1, 1]), share(&[2, 2, 2])]).is_none());
        assert!(combine(&[share(&[1, 0]), share(&[2, 2])]).is_none());
        assert!(combine(&[share(&[1]), share(&[2])]).is_none());
    }
}

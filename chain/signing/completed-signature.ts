/** What hardware leaves out of a signature: the lower half of `s`, and the recovery id. */
import { type Address, publicKeyToAddress } from "../address.js";
import { type RecoverableSignature, SECP256K1_ORDER, secp256k1 } from "../crypto.js";
import { bigintToWord, bytesToBigint } from "../hex.js";

/**
 * The signature with `s` in the lower half, and whichever recovery id gives the account.
 * @param given 32 bytes each; `s` in either half
 * @returns undefined where the account's key did not sign the digest
 */
export function completeSignature(
  digest: Uint8Array,
  given: Pick<RecoverableSignature, "r" | "s">,
  account: Address,
): RecoverableSignature | undefined {
  const { r } = given;
  const wide = bytesToBigint(given.s);
  if (wide >= SECP256K1_ORDER) return undefined;
  const s = bigintToWord(wide > SECP256K1_ORDER / 2n ? SECP256K1_ORDER - wide : wide);
  const compact = Buffer.concat([r, s]);
  const recoveryId = [0, 1].find((id) => {
    const key = secp256k1.recover(digest, compact, id);
    return key !== undefined && publicKeyToAddress(key) === account;
  });
  return recoveryId === undefined ? undefined : { r, s, recoveryId };
}

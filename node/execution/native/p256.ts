/** 0x100: whether a secp256r1 signature is right (RIP-7212). */
import { verifyP256 } from "../../../chain/crypto.js";
import { assertNoValue } from "./abi-native.js";
import type { NativeContract } from "./native.js";
import { P256_GAS, P256_NS } from "./native-gas.js";

/** digest, r, s, x and y of the key, a word each. */
const INPUT_BYTES = 160;
const DIGEST_BYTES = 32;
const SIGNATURE_END = 96;

/** 1 in a word for a right signature, no bytes for anything else. */
export const P256: NativeContract = {
  answer(call) {
    const { input } = call.message;
    call.charge(P256_GAS, P256_NS);
    assertNoValue(call);
    const output = new Uint8Array(32);
    output[31] = 1;
    return isRight(input) ? output : new Uint8Array(0);
  },
};

function isRight(input: Uint8Array): boolean {
  if (input.length !== INPUT_BYTES) return false;
  return verifyP256({
    digest: input.subarray(0, DIGEST_BYTES),
    signature: input.subarray(DIGEST_BYTES, SIGNATURE_END),
    publicKey: input.subarray(SIGNATURE_END),
  });
}

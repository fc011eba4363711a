/** Ids of filters and subscriptions. */
import { randomBytes } from "node:crypto";
import { bytesToBigint, type Hex, toQuantity } from "../../../chain/hex.js";

/** Bytes of randomness in an id: nobody guesses another client's. */
const ID_BYTES = 16;

/**
 * A new id. It is a quantity, without leading zeros, as in execution-apis: many clients (alloy,
 * web3j) keep it as a number, and ask with what they write of that.
 */
export function randomId(): Hex {
  return toQuantity(bytesToBigint(randomBytes(ID_BYTES)));
}

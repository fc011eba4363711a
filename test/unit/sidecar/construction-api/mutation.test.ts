/** Any changed character of what travels is refused, or shows as another intent or signer. */
import { beforeAll, describe, expect, it } from "@jest/globals";
import { SidecarError, type SidecarErrorCode } from "../../../../sidecar/rosetta/errors.js";
import { createRandom } from "../../../helpers/random.js";
import { ask } from "./handlers.js";
import { FACTS, KEY, pair, RECIPIENT, signatureOf, WALLET } from "./steps.js";
import { CURRENCY, GOLD } from "../../../helpers/chains/known-tokens.js";
import type { Reply, ReplyPayload } from "../replies.js";

const SEED = 7;
const random = createRandom(SEED);

const INTENTS = {
  "a native transfer": { value: 250n, currency: CURRENCY, data: undefined },
  "a contract call": { value: 0n, currency: CURRENCY, data: "0xd0e30db0" },
  "an ERC-20 transfer": { value: 250n, currency: GOLD, data: undefined },
};

/** The text with another character at one place, of those that could stand there. */
function changed(text: string, at: number, alphabet: string): string {
  const others = alphabet.split("").filter((character) => character !== text[at]);
  return `${text.slice(0, at)}${random.pick(others)}${text.slice(at + 1)}`;
}

/** The reply, or the code of the refusal; any other fault fails the test. */
async function outcome(
  name: string,
  fields: Record<string, unknown>,
): Promise<Reply | SidecarErrorCode> {
  try {
    return await ask(name, fields);
  } catch (error) {
    if (error instanceof SidecarError && error.code !== "INTERNAL") return error.code;
    throw error;
  }
}

describe.each(Object.entries(INTENTS))(`%s (seed ${SEED})`, (_name, { value, currency, data }) => {
  let unsigned: string;
  let signed: string;
  let payload: ReplyPayload;

  beforeAll(async () => {
    const built = await ask("payloads", {
      operations: pair(WALLET.address, RECIPIENT, value, currency),
      metadata: { ...FACTS, data },
    });
    unsigned = built.unsigned_transaction;
    payload = built.payloads[0];
    const signatures = [signatureOf(KEY, payload)];
    const fields = { unsigned_transaction: unsigned, signatures };
    ({ signed_transaction: signed } = await ask("combine", fields));
  });

  it("shows or refuses a change of the unsigned text, and never signs it", async () => {
    const truth = await ask("parse", { signed: false, transaction: unsigned });
    const signatures = [signatureOf(KEY, payload)];
    for (let at = 0; at < unsigned.length; at++) {
      const text = changed(unsigned, at, '0123456789abcdefABCDEFGx"{}[],: ');
      const reading = await outcome("parse", { signed: false, transaction: text });
      expect({ at, text, reading }).not.toEqual({ at, text, reading: truth });
      const combined = await outcome("combine", { unsigned_transaction: text, signatures });
      expect({ at, text, combined }).toEqual({ at, text, combined: expect.any(String) });
    }
  });

  it("refuses a change of the signature", async () => {
    const signature = signatureOf(KEY, payload);
    for (let at = 0; at < signature.hex_bytes.length; at++) {
      const hex_bytes = changed(signature.hex_bytes, at, "0123456789abcdef");
      const signatures = [{ ...signature, hex_bytes }];
      const combined = await outcome("combine", { unsigned_transaction: unsigned, signatures });
      const isRefused = combined === "INVALID_SIGNATURE" || combined === "SIGNER_MISMATCH";
      expect({ at, hex_bytes, combined, isRefused }).toMatchObject({ isRefused: true });
    }
  });

  it("shows or refuses a change of the signed bytes", async () => {
    const truth = await ask("parse", { signed: true, transaction: signed });
    for (let at = 2; at < signed.length; at++) {
      const text = changed(signed, at, "0123456789abcdef");
      const reading = await outcome("parse", { signed: true, transaction: text });
      if (typeof reading === "string") continue;
      // The signature covers every byte: a change recovers another signer, who is shown.
      const signers = reading.account_identifier_signers;
      expect({ at, text, signers }).not.toEqual({
        at,
        text,
        signers: truth.account_identifier_signers,
      });
      const payer = reading.operations[0]?.account;
      expect({ at, signers }).toEqual({ at, signers: [payer] });
    }
  });
});

/** A signer's program as hardware would have one: digests in, r and s out, `s` in either half. */
import { createInterface } from "node:readline";
// Of all of ethers the key alone: each test starts a program of its own.
import { SigningKey } from "ethers/crypto";

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const [, , privateKey, mode = "honest"] = process.argv;
const key = new SigningKey(privateKey);
let asked = 0;

for await (const line of createInterface({ input: process.stdin })) {
  asked += 1;
  const { id, digest } = JSON.parse(line);
  const answer = (fields) => console.log(JSON.stringify({ id, ...fields }));
  const { r, s } = key.sign(digest);
  if (mode === "garbage") console.log("garbage");
  else if (mode === "silent") continue;
  // As hardware is: it goes on with what it was asked for, whoever waits for it by then.
  else if (mode === "slow") setTimeout(() => answer({ r, s }), 100);
  else if (mode === "dies") process.exit(3);
  else if (mode === "refuses") answer({ error: "the token is locked" });
  else if (mode === "other-digest") answer(fieldsOf(key.sign(`0x${"11".repeat(32)}`)));
  else if (mode === "upper-half" || asked % 2 === 0) {
    answer({ r, s: `0x${(ORDER - BigInt(s)).toString(16).padStart(64, "0")}` });
  } else answer({ r, s });
}

function fieldsOf({ r, s }) {
  return { r, s };
}

/** What makes two requests the same is stored for ever: an update must not take a repeat for another one. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { sha256Hex } from "../../../chain/hashes.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { hashRequest } from "../../../ledger/withdrawals/withdrawal-request.js";

const REQUEST = {
  idempotencyKey: "one",
  customerId: parseCustomerId("alice"),
  asset: "TOKEN",
  destination: parseAddress("0x00000000000000000000000000000000000000aa"),
  destinationText: "0x00000000000000000000000000000000000000aa",
  amountUnits: 250_000_000_000_000_000n,
};

it("hashes a request to what `sha256sum` says of its terms, with a deadline and without", () => {
  expect(hashRequest(REQUEST)).toBe(
    "0xd50ea4ffa2426810691be1bd8b9adb5cb3d81b58c2599984d561b1e3738b2ee5",
  );
  expect(hashRequest({ ...REQUEST, expiresAtMs: 1_800_000_000_000 })).toBe(
    "0x1a599fae06e0592ef6cd44dbd071d1f6328771d95561ad52e81de848897bde25",
  );
});

it("has FIPS 180-4's answer for its own example", () => {
  expect(sha256Hex(Buffer.from("abc", "utf8"))).toBe(
    "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});

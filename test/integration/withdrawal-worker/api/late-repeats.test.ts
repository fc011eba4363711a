/** Requests whose deadline has passed: new ones are refused, repeats are answered, also after a loss. */
import { describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToHex } from "../../../../chain/hex.js";
import { acceptWithdrawals } from "../../../../ledger/withdrawals/withdrawals.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  requestOf,
  TOKEN,
  WALLET,
} from "../../../helpers/exchange/house.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const EXPIRES_AT_MS = 1_000_000_000_000;

async function ask(request: ReturnType<typeof requestOf>, nowMs: number) {
  const [outcome] = await acceptWithdrawals(house.database, [request], {
    ...ANY_REQUEST,
    nowMs,
  });
  return outcome;
}

/** A payment that only the chain remembered, as a recovery books it. */
async function recover(destination: string, amountAtoken: bigint): Promise<void> {
  const hash = (name: string) => bytesToHex(keccak256(Buffer.from(name)));
  await house.ledger.owner.query(
    `INSERT INTO recovered_payment (tx_hash, wallet, nonce, height, block_hash, destination,
       amount_units, gas_used, gas_price_atoken, epoch)
     VALUES ($1, $2, 0, 1, $3, $4, $5::numeric, 21000, 1, 1)`,
    [hash(destination), WALLET, hash("block"), destination, amountAtoken.toString()],
  );
}

describe("a request behind its deadline", () => {
  it("is refused when it is new, and answered when its key is known", async () => {
    const request = requestOf({ expiresAtMs: EXPIRES_AT_MS });
    const refused = { outcome: "refused", refusal: "DEADLINE_PASSED" };
    expect(await ask(request, EXPIRES_AT_MS)).toEqual(refused);
    expect(await ask(request, EXPIRES_AT_MS - 1)).toMatchObject({ outcome: "accepted" });
    expect(await ask(request, EXPIRES_AT_MS)).toMatchObject({ outcome: "repeated" });
  });

  it("freezes for a person when a recovered payment may be its own, and is not paid", async () => {
    const destination = freshAddress();
    await recover(destination, TOKEN);
    const fields = { destination, destinationText: destination, expiresAtMs: EXPIRES_AT_MS };
    const request = requestOf(fields);
    const frozen = { withdrawal: { status: "frozen" } };
    expect(await ask(request, EXPIRES_AT_MS)).toMatchObject({ outcome: "accepted", ...frozen });
    expect(await ask(request, EXPIRES_AT_MS)).toMatchObject({ outcome: "repeated", ...frozen });
    const other = requestOf({ ...fields, amountUnits: TOKEN + 1n });
    expect(await ask(other, EXPIRES_AT_MS)).toMatchObject({ refusal: "DEADLINE_PASSED" });
    await house.lane().runRound(house.signal);
    expect(house.chain.arrived).toEqual([]);
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: TOKEN });
  });
});

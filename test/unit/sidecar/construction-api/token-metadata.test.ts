/** `/construction/metadata` of a token's transfer: balances that its contract tells, and quarantine. */
import { beforeEach, describe, expect, it, jest } from "@jest/globals";
import { ALICE } from "../../../helpers/chains/journal-chain.js";
import { transferData } from "./steps.js";
import { CURRENCY, GOLD } from "../../../helpers/chains/known-tokens.js";
import { sidecarForTests, TO } from "./asked-sidecar.js";

const sidecar = sidecarForTests();
const { replace, refuse, metadata } = sidecar;

describe("/construction/metadata of an ERC-20 transfer", () => {
  const word = (units: bigint) => `0x${units.toString(16).padStart(64, "0")}`;
  const gold = (options: Record<string, unknown> = {}) => metadata({ currency: GOLD, ...options });

  beforeEach(() => {
    replace("eth_call", () => word(1_000n));
  });

  it("asks the contract for the balance, and leaves room for a receiver that is emptied", async () => {
    replace("eth_estimateGas", () => "0xc350");
    const { status, body } = await gold();
    expect([status, body]).toEqual([
      200,
      {
        metadata: {
          chain_id: "6940",
          nonce: "9",
          gas_price: "25000000",
          // 50,000 and a fifth, and what filling a slot costs more than changing it.
          gas_limit: "77100",
          data: transferData(TO, 1_000n),
        },
        suggested_fee: [{ value: "1927500000000", currency: CURRENCY }],
      },
    ]);
    const to = GOLD.metadata.contractAddress.toLowerCase();
    const asked = sidecar.node.calls.find((made) => made.method === "eth_call");
    const holder = ALICE.slice(2).padStart(64, "0");
    expect(asked?.params[0]).toMatchObject({ to, data: `0x70a08231${holder}` });
    const estimate = sidecar.node.calls.find((made) => made.method === "eth_estimateGas");
    expect(estimate?.params).toEqual([
      { from: ALICE, to, value: "0x0", data: transferData(TO, 1_000n) },
    ]);
  });

  it("refuses more tokens than there are before an estimate would revert", async () => {
    refuse("eth_estimateGas", 3, "execution reverted", "0xe450d38c");
    const { body } = await gold({ value: "1001" });
    expect([body.code, body.details]).toEqual([
      314,
      { balance: "1000", needed: "1001", currency: GOLD },
    ]);
  });

  it("refuses where the native coins do not pay the fee", async () => {
    replace("eth_getBalance", () => "0x1");
    expect((await gold()).body.details).toEqual({
      balance: "1",
      needed: "1057500000000",
      currency: CURRENCY,
    });
  });

  it("refuses a token whose contract is not there or tells no balance", async () => {
    for (const answer of ["0x", "0x01", `${word(1_000n)}00`]) {
      replace("eth_call", () => answer);
      const { body } = await gold();
      expect([answer, body.code, body.retriable]).toEqual([answer, 316, false]);
    }
    refuse("eth_call", 3, "execution reverted");
    expect((await gold()).body.code).toBe(316);
  });

  it("refuses a quarantined token: nobody would see its transfer", async () => {
    const quarantine = { height: 7, reason: "balances contradict its logs" };
    const spy = jest.spyOn(sidecar.online.index.blocks, "quarantineOf");
    spy.mockImplementation((contract) =>
      contract === GOLD.metadata.contractAddress.toLowerCase() ? quarantine : undefined,
    );
    const { body } = await gold();
    spy.mockRestore();
    expect([body.code, body.details]).toEqual([
      316,
      { currency: GOLD, quarantined_from_index: 7, reason: quarantine.reason },
    ]);
    expect((await gold()).status).toBe(200);
  });

  it("waits until the index has judged the token: before that it may be quarantined", async () => {
    await sidecar.online.indexed(2);
    // Further ahead than a request waits for.
    replace("eth_blockNumber", () => "0x200");
    const { status, body } = await gold();
    expect([status, body.code, body.retriable]).toEqual([500, 109, true]);
    // Of what no index judges nothing is waited for.
    expect((await metadata({ data: "0xabcd" })).status).toBe(200);
  });

  it("tells a contract that refuses the transfer apart", async () => {
    refuse("eth_estimateGas", 3, "execution reverted: paused", "0x08c379a0");
    const { body } = await gold();
    expect([body.code, body.details]).toEqual([
      315,
      { reason: "execution reverted: paused", data: "0x08c379a0" },
    ]);
  });
});

/**
 * Deposit addresses to the hot wallet on a real chain: coins, tokens with gas of their own, a kill
 * behind every commit, prices, and what the database refuses by itself.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { AddressBook } from "../../../../deposit-watcher/address-book.js";
import { explainTransaction } from "../../../../deposit-watcher/api/explanation.js";
import { customerBalances } from "../../../../ledger/deposits/deposit-queries.js";
import { parseCustomerId, TREASURY } from "../../../../ledger/journal/accounts.js";
import { readTreasury } from "../../../../ledger/treasury/treasury-figures.js";
import { standing } from "../../../helpers/services/ledger.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { derivation } from "../../../helpers/services/watcher.js";
import { until } from "../../../helpers/until.js";
import { callOf, ISSUER } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, COLD, dyingDatabase, Killed, PRICE, TreasuryBench } from "../treasury-bench.js";
import { newAddresses, treasuryForTests } from "./sweep-bench.js";

const TRANSFER_FEE = 21_000n * PRICE;
const { signal } = new AbortController();

let bench: TreasuryBench;

treasuryForTests((opened) => {
  bench = opened;
});

const register = newAddresses(() => bench);

async function available(customer: string, asset: string): Promise<bigint> {
  const balances = await customerBalances(bench.bench.database, parseCustomerId(customer));
  return balances?.find((one) => one.asset === asset)?.availableUnits ?? 0n;
}

const query = <Row extends object>(text: string) => bench.bench.ledger.owner.query<Row>(text);

/** What is said of the transaction that brought gas to an address. @returns the code, and whether it says gas */
async function explainGas(address: Address): Promise<[string, boolean]> {
  const [row] = await query<{ hash: string }>(
    `SELECT a.hash FROM withdrawal_attempt a
       JOIN nonce_slot s ON s.id = a.slot_id
       JOIN treasury_move m ON m.withdrawal_id = s.withdrawal_id AND m.destination = '${address}'`,
  );
  const { database, node, source } = bench.bench;
  const book = new AddressBook();
  await book.refresh(database);
  const parts = { database, node, source, watched: book };
  const explained = await explainTransaction(parts, parseHash32(row?.hash ?? ""), { signal });
  return [explained.code, explained.message.includes("gas for a sweep")];
}

describe("sweeps", () => {
  it("bring coins and tokens to the hot wallet, and leave nothing that blocks", async () => {
    const [coins, tokens] = [await register(), await register()];
    await bench.bench.mine([
      { to: coins.address, value: 10n ** 16n },
      callOf("PlainToken", "mint", [tokens.address, 700n]),
    ]);
    await bench.mine();
    await bench.mine();
    const before = await bench.units(WALLET);
    await bench.rounds(1);
    // While both are under way.
    await bench.bench.mine([{ to: coins.address, value: 3n * 10n ** 15n }]);
    await bench.rounds(8);
    expect(await bench.units(coins.address)).toBe(0n);
    expect(await bench.units(tokens.address, "PLAIN")).toBe(0n);
    expect(await bench.units(WALLET, "PLAIN")).toBe(700n);
    expect(await bench.nonce(coins.address)).toBe(2n);
    expect(await bench.nonce(tokens.address)).toBe(1n);
    const sweeps = (await bench.sweeps()).filter(({ address }) => address === coins.address);
    expect(sweeps.map(({ state, amountUnits }) => [state, amountUnits])).toEqual([
      ["settled", 10n ** 16n - TRANSFER_FEE],
      ["settled", 3n * 10n ** 15n - TRANSFER_FEE],
    ]);
    const gained = (await bench.units(WALLET)) - before;
    const [topUp] = await query<{ amount: string }>(
      `SELECT amount_units::text AS amount FROM treasury_move`,
    );
    expect(gained).toBe(13n * 10n ** 15n - 3n * TRANSFER_FEE - BigInt(topUp?.amount ?? "0"));
    // Customers keep what they sent, and nobody was credited gas.
    expect(await available(coins.customer, "TOKEN")).toBe(13n * 10n ** 15n);
    expect(await available(tokens.customer, "TOKEN")).toBe(0n);
    expect(await available(tokens.customer, "PLAIN")).toBe(700n);
    expect(await query(`SELECT 1 FROM foreign_outflow`)).toEqual([]);
    expect(await query(`SELECT state FROM treasury_move`)).toEqual([{ state: "arrived" }]);
    expect(await query(`SELECT 1 FROM signing_freeze WHERE frozen`)).toEqual([]);
    expect(await explainGas(tokens.address)).toEqual(["NOT_A_DEPOSIT", true]);
  });

  it("survive a kill behind every commit, each once", async () => {
    const pairs: { readonly coins: Address; readonly tokens: Address }[] = [];
    const before = await bench.units(WALLET, "PLAIN");
    // Each round meets sweeps in every state, and is killed one commit later than the last one.
    for (let isDone = false; !isDone; ) {
      const [coins, tokens] = [await register(), await register()];
      pairs.push({ coins: coins.address, tokens: tokens.address });
      await bench.bench.mine([
        { to: coins.address, value: 10n ** 16n },
        callOf("PlainToken", "mint", [tokens.address, 9n]),
      ]);
      await bench.mine();
      const dying = dyingDatabase(bench.worker, pairs.length);
      await bench
        .sweeper({ database: dying.database })
        .round(signal)
        .catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
        });
      isDone = !dying.isDead();
      await bench.assertEven();
      await bench.step(bench.sweeper());
      await bench.assertEven();
    }
    expect(pairs.length).toBeGreaterThan(12);
    await bench.rounds(8);
    for (const [steps, { coins, tokens }] of pairs.entries()) {
      const found = {
        nonces: [await bench.nonce(coins), await bench.nonce(tokens)],
        left: [await bench.units(coins), await bench.units(tokens, "PLAIN")],
      };
      expect({ steps, ...found }).toEqual({ steps, nonces: [1n, 1n], left: [0n, 0n] });
    }
    expect(await bench.units(WALLET, "PLAIN")).toBe(before + 9n * BigInt(pairs.length));
    const [moves] = await query<{ moves: number; sweeps: number }>(
      `SELECT count(*)::integer AS moves, count(DISTINCT sweep_id)::integer AS sweeps
         FROM treasury_move`,
    );
    expect(moves?.moves).toBe(moves?.sweeps);
  });

  it("of two treasuries at once are made once", async () => {
    const { address } = await register();
    await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
    await bench.mine();
    const [one, other] = [bench.sweeper(), bench.sweeper()];
    for (let round = 0; round < 4; round++) {
      await Promise.all([one.round(signal), other.round(signal)]);
      await bench.mine();
      await bench.assertEven();
    }
    expect(await bench.nonce(address)).toBe(1n);
    expect(await bench.units(address)).toBe(0n);
  });

  it("strand nothing that was booked while the treasury looked at an older block", async () => {
    const [empty, half] = [await register(), await register()];
    await bench.bench.mine([{ to: half.address, value: 10n ** 16n }]);
    await bench.mine();
    const before = await bench.node.view(WALLET, { signal });
    // A round that began now comes to these addresses behind the watcher.
    await bench.bench.mine([
      { to: empty.address, value: 10n ** 16n },
      { to: half.address, value: 10n ** 16n },
    ]);
    await bench.mine();
    const late = bench.sweeper({ node: { ...bench.node, view: async () => before } });
    await late.round(signal);
    await bench.rounds(8);
    for (const { address } of [empty, half]) expect(await bench.units(address)).toBe(0n);
  });

  it("wait no hour for a token whose gas a busy node did not say", async () => {
    const { address } = await register();
    await bench.bench.mine([callOf("PlainToken", "mint", [address, 3n])]);
    await bench.mine();
    const reason = "the node gave no answer in time";
    const busy = {
      ...bench.node,
      estimate: async () => [{ kind: "unknown" as const, reason }],
    };
    await bench.sweeper({ node: busy }).round(signal);
    // As a minute later.
    await query(
      `UPDATE sweep_due SET due_at = due_at - interval '1 minute' WHERE due_at <> 'infinity'`,
    );
    await bench.rounds(6);
    expect(await bench.units(address, "PLAIN")).toBe(0n);
  });

  it("wait while the price is above the policy's, and leave dust where it is", async () => {
    const [dear, dust] = [await register(), await register()];
    await bench.bench.mine([
      { to: dear.address, value: 10n ** 16n },
      { to: dust.address, value: TRANSFER_FEE + 5n },
    ]);
    await bench.mine();
    const TOKEN = { ...ANY_SWEEP, sweepFeeMaxAtoken: TRANSFER_FEE - 1n, sweepMinimumUnits: 6n };
    bench.files.policy = bench.policyOf({ assets: { TOKEN } });
    const told: string[] = [];
    const destination = { write: (line: string) => told.push(line) };
    const log = createLogger({ component: "test", destination });
    const sweeper = bench.sweeper({ log });
    const lookNow = () => query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);
    await bench.rounds(1, sweeper);
    await lookNow();
    await bench.rounds(1, sweeper);
    expect(await bench.nonce(dear.address)).toBe(0n);
    const warned = { level: "warn", asset: "TOKEN", reason: "the fee is too high", count: 2 };
    expect(told.map((line) => JSON.parse(line))).toMatchObject([warned]);
    bench.files.policy = bench.policyOf({
      assets: { TOKEN: { ...TOKEN, sweepFeeMaxAtoken: TRANSFER_FEE } },
    });
    await lookNow();
    await bench.rounds(3);
    expect(await bench.nonce(dear.address)).toBe(1n);
    expect(await bench.units(dust.address)).toBe(TRANSFER_FEE + 5n);
  });

  it("are made at once of what the policy names later, or by a lower minimum of it", async () => {
    const { address } = await register();
    await bench.bench.mine([
      callOf("PlainToken", "mint", [address, 5n]),
      { to: address, value: 10n ** 16n },
    ]);
    await bench.mine();
    const tooMuch = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n };
    bench.files.policy = bench.policyOf({ assets: { TOKEN: tooMuch } });
    const sweeper = bench.sweeper();
    await bench.rounds(1, sweeper);
    bench.files.policy = bench.policyOf({ assets: { TOKEN: tooMuch, PLAIN: ANY_SWEEP } });
    await bench.rounds(3, sweeper);
    expect(await bench.units(address, "PLAIN")).toBe(0n);
    expect(await bench.units(address)).toBeGreaterThan(0n);
    bench.files.policy = bench.policyOf({});
    // One that was started anew knows nothing of the former minimum.
    await bench.rounds(3, bench.sweeper());
    expect(await bench.units(address)).toBe(0n);
  });

  it("give up gas that is not paid by its deadline, and nothing is missing", async () => {
    const { address } = await register();
    await bench.bench.mine([callOf("PlainToken", "mint", [address, 4n])]);
    await bench.mine();
    const sweeper = bench.sweeper();
    await sweeper.round(signal);
    await sweeper.round(signal);
    await bench.assertEven();
    const state = async () => {
      const [sweep] = (await bench.sweeps()).filter((one) => one.address === address);
      return `${sweep?.state} ${sweep?.topUp}`;
    };
    expect(await state()).toBe("needs-gas open");
    // Over before the hot wallet's worker comes to it.
    await query(
      `SET session_replication_role = replica;
       UPDATE withdrawal SET expires_at = now() WHERE status = 'accepted';
       RESET session_replication_role`,
    );
    await until(
      async () => {
        await bench.lane.runRound(signal);
        await sweeper.round(signal);
        return (await state()) === "void void";
      },
      { timeoutMs: 10_000, what: "the gas is given up" },
    );
    await bench.assertEven();
    await query(`UPDATE sweep_due SET due_at = now() WHERE address = '${address}'`);
    await bench.rounds(6);
    expect(await bench.units(address, "PLAIN")).toBe(0n);
  });

  it("are followed by cold storage, and by a request that what comes back fills", async () => {
    const held = await bench.units(WALLET);
    const band = { lowUnits: 0n, targetUnits: held / 2n, highUnits: held / 2n + 1n };
    const TOKEN = { ...ANY_SWEEP, coldAddress: COLD, band };
    bench.files.policy = bench.policyOf({ assets: { TOKEN } });
    await bench.rounds(6);
    const moved = await bench.units(COLD);
    expect(moved).toBeGreaterThan(held / 2n - 10n ** 15n);
    expect(moved).toBeLessThanOrEqual(held / 2n);
    expect(await query(`SELECT state FROM treasury_move WHERE kind = 'cold'`)).toEqual([
      { state: "arrived" },
    ]);
    const treasury = async () =>
      (await readTreasury(bench.worker)).find(({ asset }) => asset === "TOKEN");
    expect(await treasury()).toMatchObject({ coldUnits: moved, inTransitUnits: 0n });

    const low = { lowUnits: held * 3n, targetUnits: held * 3n, highUnits: held * 9n };
    const cold = parseAddress(ISSUER.address.toLowerCase());
    const asked = { ...ANY_SWEEP, coldAddress: cold, band: low };
    bench.files.policy = bench.policyOf({ assets: { TOKEN: asked } });
    await bench.rounds(1);
    const refill = (await treasury())?.refill;
    expect(refill?.cameUnits).toBe(0n);
    // What came is on the chain, and in the wallet's balance, before the watcher has booked it.
    await standing(bench.bench.ledger.owner, async (tx) => {
      await tx.query(`SELECT FROM watch_cursor FOR UPDATE`);
      await bench.bench.mine([{ to: WALLET, value: refill?.amountUnits ?? 0n }]);
      bench.house.clock.ms += 3_000;
      bench.clock.ms += 3_000;
      await bench.lane.runRound(signal);
      await bench.sweeper().round(signal);
      expect((await treasury())?.refill?.cameUnits).toBe(0n);
    });
    await bench.bench.caughtUp();
    await bench.rounds(1);
    expect((await treasury())?.refill).toBeUndefined();
    expect(
      await query(`SELECT state, came_units = amount_units AS whole FROM refill_request`),
    ).toEqual([{ state: "filled", whole: true }]);
    expect((await treasury())?.coldUnits).toBe(moved - (refill?.amountUnits ?? 0n));
  });

  it("are signed to no other address than a hot wallet of the home, by both signers", async () => {
    const intent = {
      address: derivation.addressAt(0),
      index: 0,
      asset: "TOKEN",
      wallet: WALLET,
      amountUnits: 1n,
      chainId: 6940n,
      nonce: 0n,
      to: WALLET,
      valueAtoken: 1n,
      data: new Uint8Array(0),
      gasLimit: 21_000n,
      gasPriceAtoken: PRICE,
    };
    const signer = bench.signer();
    expect(signer.sign(intent).kind).toBe("signed");
    for (const wrong of [
      { to: COLD, wallet: COLD },
      { to: COLD },
      { data: new Uint8Array([1]) },
      { address: derivation.addressAt(1) },
      { chainId: 1n },
      { gasPriceAtoken: 10n ** 12n },
      { asset: "PROXY" },
    ]) {
      expect(signer.sign({ ...intent, ...wrong }).kind).toBe("refused");
    }
    // The hot wallet's: gas is for the address of the index that it is told, and for no other.
    const payment = {
      kind: "payment" as const,
      withdrawalId: "wd_x",
      customerId: TREASURY,
      asset: "TOKEN",
      approvals: [],
      chainId: 6940n,
      nonce: 10_000n,
      data: new Uint8Array(0),
      gasLimit: 21_000n,
      gasPriceAtoken: PRICE,
      valueAtoken: 1n,
      amountUnits: 1n,
    };
    const to = (destination: Address, addressIndex?: number) =>
      bench.laneSigner.sign([{ ...payment, to: destination, destination, addressIndex }], {
        signal,
      });
    expect((await to(derivation.addressAt(3), 3))[0]?.kind).toBe("signed");
    expect((await to(derivation.addressAt(3), 4))[0]?.kind).toBe("refused");
    expect((await to(derivation.addressAt(3)))[0]?.kind).toBe("refused");
  });

  it("stop with the kill switch, before anything is signed", async () => {
    const { address } = await register();
    await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
    await bench.mine();
    bench.killSwitch = { level: "stop-sign", reason: "drill", by: "test", at: undefined };
    await bench.rounds(3);
    expect(await bench.nonce(address)).toBe(0n);
    bench.killSwitch = { ...bench.killSwitch, level: "none" };
    await bench.rounds(3);
    expect(await bench.nonce(address)).toBe(1n);
  });
});

describe("the database refuses", () => {
  it("a second open sweep of an address, a used nonce, and steps backwards", async () => {
    const [row] = await query<{ address: string; nonce: string; id: string }>(
      `SELECT address, nonce::text, id::text FROM sweep WHERE state = 'settled' ORDER BY id LIMIT 1`,
    );
    const insert = (nonce: string, state: string) =>
      query(`INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce,
               gas_price_atoken, state)
             VALUES ('${row?.address}', 'TOKEN', '${WALLET}', 1, 21000, ${nonce}, 1, '${state}')`);
    await expect(insert(row?.nonce ?? "", "ready")).rejects.toMatchObject({
      code: "UNIQUE_VIOLATION",
    });
    await insert("900", "ready");
    await expect(insert("901", "ready")).rejects.toMatchObject({
      constraint: "sweep_open",
    });
    await expect(
      query(`UPDATE sweep SET state = 'sent' WHERE id = ${row?.id}`),
    ).rejects.toMatchObject({ details: { sqlState: "23001" } });
    await expect(query(`UPDATE sweep SET nonce = 7 WHERE nonce = 900`)).rejects.toThrow();
    await expect(query(`DELETE FROM sweep_attempt`)).rejects.toThrow();
  });

  it("a withdrawal in the treasury's name without a move", async () => {
    await expect(
      query(`INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset,
               destination, destination_text, amount_units, status)
             VALUES ('wd_x', 'x', '', '${TREASURY}', 'TOKEN', '0x${"9".repeat(40)}',
               '0x${"9".repeat(40)}', 1, 'accepted')`),
    ).rejects.toThrow();
    await expect(
      query(`INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
             VALUES (900000, '0x${"9".repeat(40)}', '${TREASURY}', 0, true)`),
    ).rejects.toMatchObject({ constraint: "deposit_address_of_a_customer" });
  });
});

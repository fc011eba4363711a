/**
 * The main job under load: deposits of every kind and withdrawals of every kind on a running kit.
 * What must be credited and paid is computed from what was sent, with ethers, and held against
 * the APIs, the events, the chain's own balances and the reconciliation.
 */
import fs from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress, HDNodeWallet, Mnemonic, Wallet } from "ethers";
import {
  FINAL_STATES,
  readBalance,
  readDeposits,
  readWithdrawals,
  withdrawalSchema,
} from "../helpers/exchange/api.js";
import {
  type Audit,
  auditRun,
  depositText,
  expectedText,
  readReconcile,
  reconcileKit,
  suspenseAtoken,
} from "../helpers/exchange/audit.js";
import { Sender, type TestReceipt } from "../helpers/exchange/chain.js";
import { type ExchangeRun, openStage, playExchange } from "../helpers/exchange/run.js";
import { TOKEN } from "../helpers/exchange/stage.js";
import { requestWithdrawal } from "../helpers/exchange/withdrawals.js";
import {
  callApi,
  kitOffset,
  readyDoctor,
  runCauseway,
  type RunningKit,
  startKit,
} from "../helpers/kit.js";
import { until } from "../helpers/until.js";

const SEED = Number(process.env["EXCHANGE_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

/** Ends of the kit's own output and of the logs of watcher and worker. */
function lastWords(kit: RunningKit): string {
  const logs = ["deposit-watcher", "withdrawal-worker"].map((name) => {
    const file = join(kit.home, "logs", `${name}.log`);
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : `no ${file}`;
  });
  return [kit.output(), ...logs].map((text) => text.split("\n").slice(-6).join("\n")).join("\n");
}

const sum = (amounts: readonly bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

describe("an exchange under load", () => {
  let kit: RunningKit;
  let run: ExchangeRun;
  let audit: Audit;

  beforeAll(async () => {
    kit = await startKit({ portOffset: kitOffset(1), args: ["--no-demo"] });
    try {
      run = await playExchange(openStage(kit, SEED));
      audit = await auditRun(run);
    } catch (error) {
      throw new Error(`seed ${SEED}: ${String(error)}\n${lastWords(kit)}`, { cause: error });
    }
    console.log(
      [
        `exchange: seed ${SEED}, load ${run.load.sent} transfers at ${run.load.perSecond}/s`,
        `${run.cases.length} paying transactions, ${audit.expected.length} deposit rows expected`,
        `${run.intents.length} withdrawals accepted, ${audit.hot.length} on the chain, ` +
          `${audit.hot.filter(({ receipt }) => !receipt.isSuccess).length} of them reverted`,
        ...run.steps,
      ].join("\n  "),
    );
  });
  afterAll(async () => {
    run?.stage.chain.provider.destroy();
    expect(await kit?.stop()).toBe(0);
    kit?.remove();
  });

  /** Settled withdrawals of a customer, by the chain. */
  const paidOut = (customerId: string) =>
    sum(
      audit.paid
        .filter(({ body }) => body.customerId === customerId)
        .map(({ body }) => BigInt(body.amountAtoken)),
    );

  it("was tried with enough of everything, and the chain did what was meant", () => {
    const counts = new Map<string, number>();
    for (const { kind } of run.cases) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    expect(Math.min(...counts.values())).toBeGreaterThanOrEqual(4);
    expect(audit.expected.length).toBeGreaterThanOrEqual(300);
    expect(run.intents.length).toBeGreaterThanOrEqual(150);
    const astray = run.cases.filter(({ receipt, succeeds }) => receipt.isSuccess !== succeeds);
    expect(astray).toEqual([]);
  });

  it("gives addresses that ethers derives from the xpub alone", () => {
    const { targets, xpub } = run.stage;
    expect(targets.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([
      ...targets.keys(),
    ]);
    expect(targets.map(({ checksum }) => checksum)).toEqual(
      targets.map(({ index }) => xpub.deriveChild(index).address),
    );
  });

  it("credits exactly what was paid to its customers, once, and nothing else", () => {
    expect(audit.deposits.map(depositText).toSorted()).toEqual(
      audit.expected.map(expectedText).toSorted(),
    );
    expect(new Set(audit.deposits.map(({ id }) => id)).size).toBe(audit.deposits.length);
    const places = audit.deposits.map((row) => `${row.txHash} ${row.opIndex}`);
    expect(new Set(places).size).toBe(places.length);
    const hasty = audit.deposits.filter(({ confirmations }) => confirmations < 2);
    expect(hasty).toEqual([]);
  });

  it("shows what stands behind each of them, and why a transaction made no credit", async () => {
    const { chain } = run.stage;
    for (const { id, txHash, status } of audit.deposits) {
      const evidence = await callApi(kit, "depositApi", { path: `/v1/deposits/${id}/evidence` });
      expect([id, evidence.body]).toMatchObject([
        id,
        { chainFault: null, chain: { agrees: true } },
      ]);
      const path = `/v1/deposits/explain?txHash=${txHash}`;
      const { body } = await callApi(kit, "depositApi", { path });
      const codes = status === "credited" ? ["CREDITED", "SUSPENSE"] : ["SUSPENSE"];
      expect(codes).toContain((body as { code: string }).code);
    }
    const head = await chain.provider.getBlock("latest", true);
    const unknown = `/v1/deposits/explain?txHash=${head?.hash}`;
    expect((await callApi(kit, "depositApi", { path: unknown })).body).toMatchObject({
      code: "UNKNOWN_TRANSACTION",
    });
  });

  it("has a row for every atoken that the chain shows on its deposit addresses", async () => {
    const { targets, chain } = run.stage;
    const balances = await Promise.all(
      targets.map(({ address }) => chain.provider.getBalance(address)),
    );
    const rows = (address: string) =>
      audit.deposits.filter((row) => row.address.toLowerCase() === address);
    expect(Object.fromEntries(targets.map(({ address }, n) => [address, balances[n]]))).toEqual(
      Object.fromEntries(
        targets.map(({ address }) => [
          address,
          sum(rows(address).map(({ amountAtoken }) => BigInt(amountAtoken))),
        ]),
      ),
    );
  });

  it("tells every step once, without gaps, to those who follow and those who read later", () => {
    expect(audit.events.map(({ seq }) => seq)).toEqual(audit.events.map((_, index) => index + 1));
    expect(run.followed).toEqual(audit.events.slice(0, run.followed.length));
    expect(run.followed.length).toBe(audit.events.length);
    const told = (type: string) =>
      audit.events.filter((e) => e.type === type).map((e) => String(e.data["depositId"]));
    const rows = (status: string) =>
      audit.deposits.filter((row) => row.status === status).map(({ id }) => id);
    expect(told("deposit.credited").toSorted()).toEqual(rows("credited").toSorted());
    expect(told("deposit.detected").toSorted()).toEqual(rows("credited").toSorted());
    expect(told("deposit.suspense").toSorted()).toEqual(rows("suspense").toSorted());
    const steps = new Map<string, string[]>();
    for (const { type, data } of audit.events) {
      if (!type.startsWith("withdrawal.")) continue;
      const id = String(data["withdrawalId"]);
      steps.set(id, [...(steps.get(id) ?? []), type.slice("withdrawal.".length)]);
    }
    expect([...steps.keys()].toSorted()).toEqual([...audit.withdrawals.keys()].toSorted());
    for (const [id, states] of steps) {
      const { history = [] } = audit.withdrawals.get(id) ?? {};
      expect({ id, states }).toEqual({ id, states: history.map(({ status }) => status) });
      expect(states.filter((state) => FINAL_STATES.has(state))).toHaveLength(1);
    }
  });

  it("pays every accepted request exactly once on the chain, or provably never", () => {
    const { hot, withdrawals, paid } = audit;
    expect([...withdrawals.keys()].toSorted()).toEqual(run.intents.map(({ id }) => id).toSorted());
    expect(hot.map(({ nonce }) => nonce)).toEqual(hot.map((_, index) => index));
    const onChain = new Map(hot.map((transaction) => [transaction.hash, transaction]));
    for (const { id, body, end, kind } of run.intents) {
      const row = withdrawals.get(id);
      if (row === undefined) throw new Error(`${id} is not in the list`);
      const what = `${kind} ${id}`;
      const mined = row.hashes.flatMap((hash) => onChain.get(hash) ?? []);
      const isPaid = mined.some(({ receipt }) => receipt.isSuccess);
      expect([what, row.status]).toEqual([what, isPaid ? "settled" : "failed"]);
      if (end !== "once") expect([what, isPaid]).toEqual([what, end === "paid"]);
      if (end === "refused") expect([what, row.nonce, row.hashes]).toEqual([what, null, []]);
      expect([what, row.to, row.amountAtoken]).toEqual([what, body.to, body.amountAtoken]);
      expect(mined.length).toBe(row.nonce === null ? 0 : 1);
      for (const { hash, nonce, to, valueAtoken, receipt } of mined) {
        const asked = [body.to.toLowerCase(), BigInt(body.amountAtoken)];
        expect([what, to, valueAtoken]).toEqual([what, ...asked]);
        expect([row.txHash, row.nonce, row.blockNumber]).toEqual([
          hash,
          nonce,
          receipt.blockNumber,
        ]);
      }
    }
    const claimed = [...withdrawals.values()].flatMap(({ hashes }) => hashes);
    expect(claimed.toSorted()).toEqual([...onChain.keys()].toSorted());
    for (const contract of run.contracts.destinations.once) {
      expect(paid.filter(({ body }) => body.to === contract)).toHaveLength(1);
    }
  });

  it("brings receivers exactly what was asked for", async () => {
    const { provider } = run.stage.chain;
    const due = new Map<string, bigint>();
    const { relayTargets, destinations } = run.contracts;
    for (const { body } of audit.paid) {
      const to = body.to.toLowerCase();
      due.set(to, (due.get(to) ?? 0n) + BigInt(body.amountAtoken));
    }
    const own = new Set(run.stage.targets.map(({ address }) => address));
    const elsewhere = [...due].filter(([to]) => !own.has(to) && !relayTargets.has(to));
    for (const [to, amountAtoken] of elsewhere) {
      if (to === destinations.boomerang) continue;
      expect([to, await provider.getBalance(to)]).toEqual([to, amountAtoken]);
    }
    for (const empty of [...destinations.refusers, destinations.burner]) {
      expect(await provider.getBalance(empty)).toBe(0n);
    }
  });

  it("never lets a race take more than the balance", () => {
    for (const { accepted, refused, balanceAtoken } of run.races) {
      const takenAtoken = sum(accepted.map(({ body }) => BigInt(body.amountAtoken)));
      const leftAtoken = balanceAtoken - takenAtoken;
      expect(leftAtoken).toBeGreaterThanOrEqual(0n);
      for (const { amountAtoken, answer } of refused) {
        expect(answer.status).toBe(422);
        expect(answer.body["code"]).toBe("INSUFFICIENT_BALANCE");
        // What was refused did not fit any more, so it does not fit in the end.
        expect(amountAtoken).toBeGreaterThan(leftAtoken);
      }
    }
    const [equal, , whole] = run.races;
    expect([equal?.accepted.length, whole?.accepted.length]).toEqual([7, 1]);
  });

  it("makes one withdrawal of a key, however often and in whatever spelling it is sent", () => {
    for (const { accepted, answers } of run.repeats) {
      expect(answers.map(({ answer }) => [answer.status, answer.body["id"]])).toEqual(
        answers.map(() => [201, accepted.id]),
      );
    }
    for (const { accepted, answers } of run.bodyRaces) {
      for (const { body, answer } of answers) {
        const isWinner = body.amountAtoken === accepted.body.amountAtoken;
        const { status } = answer;
        expect([status, answer.body[isWinner ? "id" : "code"]]).toEqual(
          isWinner ? [201, accepted.id] : [422, "IDEMPOTENCY_KEY_REUSED"],
        );
      }
    }
  });

  it("answers a repeat with the present state, and refuses another body for the key", async () => {
    const [intent] = run.intents.filter(({ end }) => end === "paid");
    if (intent === undefined) throw new Error("no intent");
    const again = await requestWithdrawal(kit, intent);
    expect([again.status, again.body["id"], again.body["status"]]).toEqual([
      201,
      intent.id,
      "settled",
    ]);
    for (const change of [
      { amountAtoken: `${BigInt(intent.body.amountAtoken) + 1n}` },
      { to: "0x00000000000000000000000000000000000abcde" },
      { customerId: "race-0" },
    ]) {
      const other = await requestWithdrawal(kit, {
        ...intent,
        body: { ...intent.body, ...change },
      });
      expect([other.status, other.body["code"]]).toEqual([422, "IDEMPOTENCY_KEY_REUSED"]);
    }
  });

  it("refuses what must never be paid, and leaves no trace of it", async () => {
    const { hotWallet } = run.stage;
    const good = { customerId: "customer-0", asset: "TOKEN", to: hotWallet, amountAtoken: "1" };
    // EIP-55's own example: one made at random may have no letter whose case tells anything.
    const checksum = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const swapped = checksum.replace(/[a-zA-Z](?=[^a-zA-Z]*$)/, (letter) =>
      letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase(),
    );
    const fine = { ...good, to: run.stage.addressAt(0) };
    const refusals: readonly (readonly [object, number, string | undefined])[] = [
      [good, 422, "FORBIDDEN_DESTINATION"],
      [{ ...good, to: getAddress(hotWallet) }, 422, "FORBIDDEN_DESTINATION"],
      [{ ...good, to: `0x${"00".repeat(20)}` }, 422, "FORBIDDEN_DESTINATION"],
      [{ ...good, to: `0x${"00".repeat(18)}dead` }, 422, "FORBIDDEN_DESTINATION"],
      [{ ...good, to: `0x${"00".repeat(18)}dEaD` }, 422, "FORBIDDEN_DESTINATION"],
      [{ ...good, to: swapped }, 422, undefined],
      [{ ...good, to: checksum.toUpperCase().replace("0X", "0x") }, 422, undefined],
      [{ ...good, to: "0x1234" }, 422, undefined],
      [{ ...fine, customerId: "nobody" }, 422, "UNKNOWN_CUSTOMER"],
      [{ ...fine, asset: "BTC" }, 422, "UNKNOWN_ASSET"],
      [{ ...fine, amountAtoken: String(10n ** 30n) }, 422, "INSUFFICIENT_BALANCE"],
      [{ ...fine, amountAtoken: "0" }, 422, undefined],
      [{ ...fine, amountAtoken: "1.5" }, 422, undefined],
      [{ ...fine, amountAtoken: String(2n ** 256n) }, 422, undefined],
    ];
    for (const [body, status, code] of refusals) {
      const answer = await requestWithdrawal(kit, { key: "one key for all of these", body });
      const told = [JSON.stringify(body), JSON.stringify(answer.body)];
      expect([...told, answer.status]).toEqual([...told, status]);
      if (code !== undefined) expect([...told, answer.body["code"]]).toEqual([...told, code]);
    }
    const path = "/v1/withdrawals";
    expect((await callApi(kit, "withdrawalApi", { path, body: fine })).status).toBe(400);
    const headers = { Authorization: "Bearer x", "Idempotency-Key": "k" };
    expect((await callApi(kit, "withdrawalApi", { path, body: fine, headers })).status).toBe(401);
    expect(await readWithdrawals(kit)).toHaveLength(run.intents.length);
  });

  it("leaves every customer with credits minus settled withdrawals", async () => {
    const customers = [...new Set(run.stage.targets.map(({ customerId }) => customerId))];
    for (const customerId of customers) {
      const credits = audit.expected.filter(
        (row) => row.customerId === customerId && row.status === "credited",
      );
      const creditedAtoken = sum(credits.map(({ amountAtoken }) => amountAtoken));
      const availableAtoken = creditedAtoken - paidOut(customerId);
      const expected = { availableAtoken, heldAtoken: 0n, pendingAtoken: 0n };
      expect([customerId, await readBalance(kit, customerId)]).toEqual([customerId, expected]);
    }
  });

  it("reconciles to the last atoken, under load and after, with strays in suspense", async () => {
    const meanwhile = readReconcile(run.reconcileUnderLoad);
    expect([meanwhile.code, meanwhile.clean, meanwhile.text]).toEqual([
      0,
      true,
      expect.any(String),
    ]);
    const answer = await reconcileKit(run.stage);
    expect([answer.code, answer.clean, answer.causes]).toEqual([0, true, []]);
    const late = audit.expected.filter(({ status }) => status === "suspense");
    const returned = audit.paid
      .filter(({ body }) => body.to === run.contracts.destinations.boomerang)
      .map(({ body }) => BigInt(body.amountAtoken) / 2n);
    expect(returned).toHaveLength(3);
    expect(await suspenseAtoken(kit)).toBe(
      sum([...late.map(({ amountAtoken }) => amountAtoken), ...returned]) + run.inflowsAtoken,
    );
  });

  it("is well to the doctor, who counts the peers of its node", async () => {
    const { code, stdout } = await readyDoctor(kit, ["--json"]);
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: readonly unknown[] };
    expect({ code, ok }).toEqual({ code: 0, ok: true });
    expect(checks).toContainEqual(
      expect.objectContaining({ id: "peers", severity: "pass", value: "0" }),
    );
  });

  describe("when somebody else uses the hot wallet's key", () => {
    const stolenAtoken = 123n * TOKEN + 456n;
    let theft: TestReceipt;
    let waitingId = "";
    const askFor = async (key: string) => {
      const to = `0x${"5a".repeat(20)}`;
      const body = { customerId: "customer-1", asset: "TOKEN", to, amountAtoken: "1000" };
      const { status, body: answer } = await requestWithdrawal(kit, { key, body });
      expect(status).toBe(201);
      return withdrawalSchema.parse(answer);
    };
    const show = async (id: string) => {
      const { body } = await callApi(kit, "withdrawalApi", { path: `/v1/withdrawals/${id}` });
      return withdrawalSchema.parse(body);
    };

    beforeAll(async () => {
      const keystore = kit.key("hot-wallet.json");
      const hot = await Wallet.fromEncryptedJson(keystore, kit.key("hot-wallet.passphrase"));
      expect(hot.address.toLowerCase()).toBe(run.stage.hotWallet);
      const thief = new Sender(hot, run.stage.chain, audit.hot.length);
      const taken = { to: `0x${"7e".repeat(20)}`, valueAtoken: stolenAtoken };
      const [receipt] = await run.stage.chain.mined(await thief.send([taken]));
      if (receipt === undefined) throw new Error("nothing was taken");
      theft = receipt;
      // A busy machine may keep watcher and worker from looking at that block for a while.
      await until(async () => !(await reconcileKit(run.stage)).clean, {
        timeoutMs: 60_000,
        what: "the theft's block is looked at",
      });
      const list = ["withdrawals", "list", "--json", "--limit", "1"];
      const frozen = async () => JSON.parse((await runCauseway(kit, list)).stdout).signing.frozen;
      await until(frozen, { timeoutMs: 60_000, what: "the worker sees that its nonce is used" });
    });

    const theftCause = () => ({
      account: `asset:wallet:${run.stage.hotWallet}`,
      txHash: theft.hash,
      chainAtoken: (-stolenAtoken - theft.feeAtoken).toString(),
      ledgerAtoken: "0",
    });

    it("reconcile fails and names transaction and amount", async () => {
      const answer = await reconcileKit(run.stage);
      expect([answer.code, answer.clean]).toEqual([1, false]);
      expect(answer.causes).toEqual([theftCause()]);
      expect(answer.differences).toEqual({
        [`asset:wallet:${run.stage.hotWallet}`]: theftCause().chainAtoken,
        "asset:deposit_addresses": "0",
      });
      const { stdout, code } = await runCauseway(kit, ["reconcile"]);
      expect(code).toBe(1);
      expect(stdout).toContain(theft.hash);
      expect(stdout).toContain((stolenAtoken + theft.feeAtoken).toString());
    });

    it("nothing more is signed, and the operator sees why", async () => {
      const list = await runCauseway(kit, ["withdrawals", "list", "--json", "--limit", "1"]);
      expect(list.code).toBe(1);
      expect(JSON.parse(list.stdout)).toMatchObject({ signing: { frozen: true } });
      const ready = await fetch(`${kit.url("withdrawalApi")}/ready`);
      expect(ready.status).toBe(503);
      waitingId = (await askFor("behind the theft")).id;
      await run.stage.chain.blocksPass(15);
      expect(await show(waitingId)).toMatchObject({ status: "accepted", nonce: null, hashes: [] });
      const shown = await runCauseway(kit, ["withdrawals", "show", waitingId, "--json"]);
      expect(JSON.parse(shown.stdout)).toMatchObject({ id: waitingId, status: "accepted" });
      const { hotWallet, chain } = run.stage;
      expect(await chain.provider.getTransactionCount(hotWallet)).toBe(audit.hot.length + 1);
    });

    it("signing goes on behind the foreign transaction once the operator accepts it", async () => {
      const refused = await runCauseway(kit, ["withdrawals", "release"]);
      expect(refused.code).toBe(1);
      expect(refused.stdout).toContain(theft.hash);
      expect(await show(waitingId)).toMatchObject({ status: "accepted" });
      const word = ["--acknowledge", theft.hash, "--reason", "the key is rotated"];
      const released = await runCauseway(kit, ["withdrawals", "release", ...word]);
      expect([released.code, released.stderr]).toEqual([0, ""]);
      const isSettled = async () => (await show(waitingId)).status === "settled";
      await until(isSettled, { timeoutMs: 20_000, what: "the waiting withdrawal is settled" });
      expect((await show(waitingId)).nonce).toBe(audit.hot.length + 1);
    });

    it("a transfer of a deposit address to itself is no deposit; its fee is seen", async () => {
      const { stage } = run;
      const root = Mnemonic.fromPhrase(kit.key("deposit.seed"));
      const [target] = stage.targets;
      if (target === undefined) throw new Error("no address");
      const path = `m/44'/60'/0'/0/${target.index}`;
      const owner = new Sender(HDNodeWallet.fromMnemonic(root, path), stage.chain);
      expect(owner.wallet.address.toLowerCase()).toBe(target.address);
      const before = await readBalance(kit, target.customerId);
      const pair = { to: target.address, valueAtoken: 10n ** 15n };
      const [spent] = await stage.chain.mined(await owner.send([pair]));
      const marker = { to: target.address, valueAtoken: 77n };
      const [marked] = await stage.chain.mined(await stage.faucet.send([marker]));
      const isCredited = async () =>
        (await readBalance(kit, target.customerId)).availableAtoken >= before.availableAtoken + 77n;
      await until(isCredited, { timeoutMs: 20_000, what: "the payment behind it is credited" });
      expect((await readBalance(kit, target.customerId)).availableAtoken).toBe(
        before.availableAtoken + 77n,
      );
      const rows = (await readDeposits(kit)).slice(audit.deposits.length);
      expect(rows.map(({ txHash }) => txHash)).toEqual([marked?.hash]);
      const answer = await reconcileKit(stage);
      expect(answer.code).toBe(1);
      expect(answer.causes).toEqual([
        theftCause(),
        {
          account: "asset:deposit_addresses",
          txHash: spent?.hash,
          chainAtoken: `-${spent?.feeAtoken}`,
          ledgerAtoken: "0",
        },
      ]);
    });
  });
});

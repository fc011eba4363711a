/** A machine that is lost with its home: nobody remembers how many addresses were given out since the backup. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { getAddress, HDNodeWallet } from "ethers";
import { createAddressDerivation } from "../../../chain/derivation/address-derivation.js";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHex } from "../../../chain/hex.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { LedgerGuard } from "../../../ledger/guard/ledger-guard.js";
import { acquireWatchLease } from "../../../ledger/watch/watch-lease.js";
import { signLegacy } from "../../../chain/transaction.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { derivation, Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;
let backup: string;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  backup = await desk.backup();
});
afterEach(() => desk.close());

/** Customers of the day of whom the backup knows nothing. @returns their addresses */
async function registerMany(count: number): Promise<string[]> {
  const given: string[] = [];
  for (let n = 0; n < count; n += 1) given.push((await desk.register(`new-${n}`)).address);
  return given;
}

/** Another machine: `config/` and the database are of the backup. */
async function loseMachine(): Promise<void> {
  await desk.useDatabase(backup);
  rmSync(`${desk.home}/data`, { recursive: true });
}

const declare = (...more: readonly string[]) =>
  desk.causeway("recover", "--declare", "the machine is lost", ...more);

describe("an address that was told since the backup", () => {
  it("is told to nobody else, also where a whole day's customers have paid nothing yet", async () => {
    const given = await registerMany(60);
    await loseMachine();
    expect((await declare("--apply")).code).toBe(0);
    await desk.watch();
    const { address, index } = await desk.register("dave");
    expect(given).not.toContain(address);
    expect(index).toBe(1 + 1_000);
    // Whoever was told one of them and pays now is not taken for another customer.
    desk.pay([derivation.addressAt(41), TOKEN]);
    desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("dave")).toBe(0n);
    const found = await desk.database.query(`SELECT address, status FROM deposit ORDER BY seq`);
    expect(found.at(-1)).toEqual({ address: derivation.addressAt(41), status: "suspense" });
    expect(await desk.breaks()).toBe("");
  });

  it("is told to nobody else where the search was broken off and the ledger opened without it", async () => {
    const given = await registerMany(60);
    await loseMachine();
    desk.chain.isSyncing = true;
    await expect(declare()).rejects.toMatchObject({ code: "NODE_UNFIT" });
    desk.chain.isSyncing = false;
    // Closed already: the runbook's next command has no --declare.
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    const { address, index } = await desk.register("dave");
    expect(given).not.toContain(address);
    expect(index).toBe(1 + 1_000);
  });

  it("is found however far behind the others it was paid, with those behind it", async () => {
    desk.pay([derivation.addressAt(150), TOKEN]);
    desk.chain.mine();
    await loseMachine();
    const plan = await declare();
    expect(plan.code).toBe(1);
    expect(plan.text).toContain("register 1150 addresses without a customer, indexes 1 to 1150");
    expect(plan.text).toContain("Nobody remembers how many addresses were given out");
    // Typed again, it is the same plan.
    expect((await declare()).text).toContain("register 1150 addresses");
  });

  it("is the last one that the operator's own records know, and no margin is needed", async () => {
    await registerMany(60);
    await loseMachine();
    const plan = await declare("--last-address-index", "60");
    expect(plan.text).toContain("register 60 addresses without a customer, indexes 1 to 60");
    expect(plan.text).not.toContain("Nobody remembers");
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    expect((await desk.register("dave")).index).toBe(61);
  });
});

describe("recover in a home that never met its ledger", () => {
  it("does not say that the ledger stands, unless a watcher is at work who knows", async () => {
    await loseMachine();
    const alone = await desk.causeway("recover");
    expect([alone.code, alone.text]).toEqual([
      1,
      expect.stringContaining("Start the deposit watcher first"),
    ]);
    await acquireWatchLease(desk.watcherDatabase, { owner: "a watcher", leaseMs: 60_000 });
    const beside = await desk.causeway("recover");
    expect([beside.code, beside.text]).toEqual([0, expect.stringContaining("nothing to do")]);
    // Its home may be as new as this one, and knows then what it has found.
    expect(beside.text).toMatch(/Where that home is new, .*: causeway recover --declare/);
  });
});

describe("a loss that a home which gives out no address has found", () => {
  /** As the process of that name, with a home of its own, looks at its ledger. */
  async function look(reporter: string): Promise<void> {
    const home = `${desk.home}/${reporter}`;
    mkdirSync(`${home}/data`, { recursive: true });
    await (await LedgerGuard.open({ database: desk.workerDatabase, home, reporter })).keep();
  }

  it("is told as such: what the watcher gave out meanwhile is known to nobody", async () => {
    await registerMany(2);
    await look("withdrawal-worker");
    // While the worker stands still.
    const given = await registerMany(2);
    await loseMachine();
    await look("withdrawal-worker");
    const plan = await desk.causeway("recover");
    expect(plan.text).toContain("register 2 addresses without a customer, indexes 1 to 2");
    expect(plan.text).toMatch(/withdrawal-worker remembered, .* before you apply this.*--declare/);
    const applied = await desk.causeway("recover", "--apply");
    expect(applied.text).toMatch(/withdrawal-worker remembered, .*--declare/);
    expect(applied.text).not.toContain("before you apply");
    // A word of a person is behind all of that.
    const declared = await declare("--last-address-index", "4", "--apply");
    expect(declared.text).not.toContain("remembered, and");
    expect(given).not.toContain((await desk.register("dave")).address);
  });

  it("is as good as any where a watcher's home remembers the same", async () => {
    await registerMany(2);
    const reporters = ["withdrawal-worker", "deposit-watcher"];
    for (const reporter of reporters) await look(reporter);
    await loseMachine();
    for (const reporter of reporters) await look(reporter);
    for (const words of [[], ["--apply"]]) {
      const { text } = await desk.causeway("recover", ...words);
      expect(text).toContain("register 2 addresses without a customer");
      expect(text).not.toContain("remembered, and");
    }
  });
});

describe("--last-address-index", () => {
  it("is refused where it says nothing, before anything is closed", async () => {
    await loseMachine();
    for (const index of ["", "-1", "1.5", "1e3", "0x10", "2147483648", "99999999999"]) {
      await expect(declare(`--last-address-index=${index}`)).rejects.toMatchObject({
        code: "USAGE",
        message: "--last-address-index takes 0 to 2147483647.",
      });
    }
    await expect(desk.causeway("recover", "--last-address-index", "7")).rejects.toMatchObject({
      code: "USAGE",
      message: "--last-address-index goes with --declare.",
    });
    // Mistyped by some digits: nothing would take it back.
    await expect(declare("--last-address-index", "60000000")).rejects.toMatchObject({
      message: "more than 1000000 addresses are lost",
    });
    expect((await desk.register("dave")).index).toBe(1);
  });
});

describe("a wallet that was added behind the backup", () => {
  const key = keccak256(Buffer.from("second hot wallet of a lost home"));
  const second = privateKeyToAddress(key);
  const apply = (...more: readonly string[]) => desk.causeway("recover", "--apply", ...more);

  /** It got coins, and has paid one TOKEN of them. */
  function payBy(payer: Uint8Array): void {
    desk.pay([privateKeyToAddress(payer), 50n * TOKEN]);
    const terms = { nonce: 0n, to: destination(1), valueAtoken: TOKEN, data: new Uint8Array(0) };
    const gas = { gasPriceAtoken: 30_000_000n, gasLimit: 21_000n };
    const paid = signLegacy({ chainId: FAKE_CHAIN_ID, ...terms, ...gas }, payer);
    desk.chain.submit(bytesToHex(paid));
    desk.chain.mine();
  }

  it("is recovered where a person names it, and its key lies in another home", async () => {
    await registerMany(1);
    payBy(key);
    await desk.useDatabase(backup);
    const named = ["--wallet", second] as const;
    const plan = await desk.causeway("recover", ...named);
    expect(plan.text).toContain(`register the hot wallet ${getAddress(second)}: whoever recovered`);
    expect(plan.text).toContain(`book 1 payments of the hot wallet ${getAddress(second)}`);
    // As of a customer, whose coins are not the exchange's.
    const customer = ["--wallet", derivation.addressAt(0)] as const;
    await expect(apply(...customer)).rejects.toThrow("has sent nothing");
    expect((await apply(...named)).code).toBe(0);
    await desk.watch();
    expect(await desk.breaks()).toBe("");
    const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
    const { id } = await desk.request({ key: "k1", ...fields });
    await desk.work(3, [desk.lane(), desk.laneOf(key)]);
    expect((await desk.read(id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    // What the ledger knows may be named; an open ledger takes nothing in.
    expect((await desk.causeway("recover", ...named)).code).toBe(0);
    const third = keccak256(Buffer.from("third hot wallet of a lost home"));
    payBy(third);
    const late = ["--wallet", privateKeyToAddress(third)] as const;
    await expect(desk.causeway("recover", ...late)).rejects.toThrow(
      "The ledger is open, and nothing was looked for",
    );
  });

  it("is not recovered without what it paid before the ledger was told of it", async () => {
    const again = await desk.backup();
    payBy(key);
    await loseMachine();
    // Named once the kit has booked past what it paid: its nonces begin behind that.
    await desk.watch();
    desk.writeKeystore("wallets/second.json", second);
    const unseen = `up to block ${desk.chain.head} were mined before this ledger knew it`;
    const plan = await declare("--last-address-index", "0");
    expect([plan.code, plan.text]).toEqual([1, expect.stringContaining(unseen)]);
    await expect(apply()).rejects.toMatchObject({
      code: "RECOVERY",
      message: expect.stringContaining("--accept-unseen"),
    });
    await expect(desk.register("dave")).rejects.toMatchObject({ code: "RECOVERY" });
    // A person may say that it was used elsewhere, of this wallet and no other.
    await expect(apply("--accept-unseen", destination(1))).rejects.toMatchObject({ code: "USAGE" });
    expect((await apply("--accept-unseen", second)).code).toBe(0);

    // Put back once more, with its file in the home: what it paid is found, and not paid again.
    await desk.useDatabase(again);
    await desk.watch();
    const { code, text } = await declare("--last-address-index", "0", "--apply");
    expect([code, /book [1-9].*/.exec(text)?.[0]]).toEqual([0, expect.stringContaining("book 1 ")]);
    const fields = { customer: "alice", to: destination(1), amountAtoken: TOKEN };
    const { id } = await desk.request({ key: "k1", ...fields });
    await desk.work(3, [desk.lane(), desk.laneOf(key)]);
    expect((await desk.read(id)).status).toBe("frozen");
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
  });
});

describe("a home with another deposit key than the ledger's", () => {
  const otherXpub = HDNodeWallet.fromPhrase(
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
    undefined,
    "m/44'/60'/0'/0",
  ).neuter().extendedKey;
  const keyFile = () => `${desk.home}/config/deposit.xpub`;
  const useKey = (xpub: string) => writeFileSync(keyFile(), `${xpub}\n`);
  const registered = async () => {
    const rows = await desk.database.query<{ address: string }>(
      `SELECT address FROM deposit_address ORDER BY index`,
    );
    return rows.map(({ address }) => address);
  };
  const addressesOf = (key: typeof derivation, from: number, end: number) =>
    Array.from({ length: end - from }, (_, place) => key.addressAt(from + place));

  it("recovers nothing: the addresses that customers were told would never be watched", async () => {
    const own = readFileSync(keyFile(), "utf8").trim();
    await registerMany(2);
    await loseMachine();
    // The new machine's home was made by itself.
    useKey(otherXpub);
    for (const words of [[], ["--last-address-index", "2"]]) {
      await expect(declare("--apply", ...words)).rejects.toMatchObject({
        code: "HOME_UNUSABLE",
        message: expect.stringContaining(`address 0 of this ledger, ${derivation.addressAt(0)}`),
      });
    }
    expect(await registered()).toEqual([derivation.addressAt(0)]);
    // Not even closed: what was typed was about another ledger's home.
    expect((await desk.register("dave")).index).toBe(1);
    useKey(own);
    expect((await declare("--last-address-index", "2", "--apply")).code).toBe(0);
    expect(await registered()).toEqual(addressesOf(derivation, 0, 3));
    desk.pay([derivation.addressAt(2), TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const found = await desk.database.query(`SELECT address, status FROM deposit ORDER BY seq`);
    expect(found.at(-1)).toEqual({ address: derivation.addressAt(2), status: "suspense" });
  });

  it("still goes back on a chain that lost blocks: no address is made for that", async () => {
    useKey(otherXpub);
    await desk.loseAbove(0);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  });

  describe("where the key was exchanged on purpose, at index 3", () => {
    const other = createAddressDerivation(otherXpub);
    const formerFile = () => `${desk.home}/former.xpub`;
    const former = () => ["--former-key", `0:${formerFile()}`];
    const recover = (...words: readonly string[]) => desk.causeway("recover", ...words);
    const toldOfEach = [...addressesOf(derivation, 0, 3), ...addressesOf(other, 3, 6)];
    const useFrom = (index: number) => {
      desk.env["CAUSEWAY_WATCHER_API_DEPOSIT_KEY_FROM_INDEX"] = String(index);
    };

    /** Six addresses were told, three of either key. */
    async function exchange(): Promise<void> {
      await registerMany(2);
      writeFileSync(formerFile(), readFileSync(keyFile()));
      useKey(otherXpub);
      useFrom(3);
      for (let n = 0; n < 3; n += 1) await desk.register(`later-${n}`, other);
      expect(await registered()).toEqual(toldOfEach);
    }

    it("recovers each part by its own key, by what the home remembers", async () => {
      await exchange();
      await desk.useDatabase(backup);
      // Whoever looks first closes the ledger, with all that the home remembers.
      for (const words of [[], ["--apply"], ["--declare", "lost", "--last-address-index", "2"]]) {
        await expect(recover(...words)).rejects.toMatchObject({
          code: "HOME_UNUSABLE",
          message: expect.stringContaining("causeway recover --former-key 0:<file>"),
        });
      }
      expect(await registered()).toEqual([derivation.addressAt(0)]);
      expect((await recover(...former())).text).toContain("5 addresses without a customer");
      expect((await recover(...former(), "--apply")).code).toBe(0);
      expect(await registered()).toEqual(toldOfEach);
      // What comes to an address of the present key is seen, and the next one is of it.
      desk.pay([other.addressAt(4), TOKEN]);
      desk.chain.mine();
      await desk.watch();
      const found = await desk.database.query(`SELECT address, status FROM deposit ORDER BY seq`);
      expect(found.at(-1)).toEqual({ address: other.addressAt(4), status: "suspense" });
      expect((await desk.register("dave", other)).index).toBe(6);
    });

    it("recovers each part by its own key, by the word of a person, also of nothing", async () => {
      await exchange();
      await desk.useEmptyDatabase();
      rmSync(`${desk.home}/data`, { recursive: true });
      const words = ["--declare", "the machine is lost", "--last-address-index", "5", "--apply"];
      await expect(recover(...words)).rejects.toMatchObject({ code: "HOME_UNUSABLE" });
      expect((await recover(...words, ...former())).code).toBe(0);
      expect(await registered()).toEqual(toldOfEach);
    });

    it("recovers nothing by a key that is not the one of its indexes", async () => {
      await exchange();
      const whole = await desk.backup();
      await desk.useDatabase(backup);
      const wrong = HDNodeWallet.createRandom("", "m/44'/60'/0'/0").neuter().extendedKey;
      writeFileSync(`${desk.home}/wrong.xpub`, wrong);
      const refused: readonly (readonly [string, string])[] = [
        [`0:${desk.home}/wrong.xpub`, "wrong.xpub is another key than the ledger's: address 0"],
        [`0:${keyFile()}`, "holds the same key as"],
        [`3:${formerFile()}`, "from index 3 on addresses are of config/deposit.xpub"],
        [formerFile(), "--former-key takes the first index"],
      ];
      for (const [words, message] of refused) {
        await expect(recover("--former-key", words, "--apply")).rejects.toMatchObject({
          message: expect.stringContaining(message),
        });
      }
      expect(await registered()).toEqual([derivation.addressAt(0)]);
      // The ledger's last address tells of an exchange that the home's settings do not know of.
      await desk.useDatabase(whole);
      writeFileSync(keyFile(), readFileSync(formerFile()));
      useFrom(0);
      await expect(declare("--last-address-index", "9", "--apply")).rejects.toMatchObject({
        message: expect.stringContaining(`address 5 of this ledger, ${other.addressAt(5)}`),
      });
    });
  });
});

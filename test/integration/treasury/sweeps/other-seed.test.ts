/**
 * What the treasury cannot sign for: addresses of another seed, those of a deposit key that was exchanged, or of
 * another home; and tokens that its home's list lacks.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { HDNodeWallet } from "ethers";
import { createAddressDerivation } from "../../../../chain/derivation/address-derivation.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { registerAddress } from "../../../helpers/services/watcher.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET, WALLET_KEY } from "../../../helpers/exchange/house.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { laneRules } from "../../../helpers/keys/signing.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

const former = createAddressDerivation(
  HDNodeWallet.fromPhrase(
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
    undefined,
    "m/44'/60'/0'/0",
  ).neuter().extendedKey,
);

let bench: TreasuryBench;

const moves = () => bench.bench.ledger.owner.query(`SELECT 1 FROM treasury_move`);

const lookNow = () =>
  bench.bench.ledger.owner.query(`UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`);

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

beforeEach(() => {
  bench.files.policy = bench.policyOf({});
});

it("addresses of another seed take no place of a sweep and no gas: nothing could be signed for them", async () => {
  const sweeper = bench.sweeper({ settings: { ...bench.settings, sweepsAtOnce: 2 } });
  const formerOf = async (customer: string) => {
    const { address } = await registerAddress(bench.bench.database, parseCustomerId(customer), {
      deriveAddress: (index) => former.addressAt(index),
      issuedBelow: 0,
    });
    return address;
  };
  const others = [await formerOf("old-1"), await formerOf("old-2"), await formerOf("old-3")];
  await bench.bench.mine([
    ...others.map((to) => ({ to, value: 10n ** 16n })),
    callOf("PlainToken", "mint", [others[2], 5n]),
  ]);
  await bench.mine();
  const own = await bench.bench.register("alice");
  await bench.bench.mine([{ to: own, value: 10n ** 16n }]);
  await bench.mine();
  await bench.rounds(3, sweeper);
  expect((await bench.sweeps()).map(({ address, state }) => [address, state])).toEqual([
    [own, "settled"],
  ]);
  expect(await bench.units(own)).toBe(0n);
});

it("tokens of no list, and of one that says otherwise, take no place and no gas until it is read anew", async () => {
  const address = await bench.bench.register("carol");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  const before = (await bench.sweeps()).length;
  for (const contract of [undefined, WALLET]) {
    const signer = bench.signer({ contractOf: () => contract });
    await bench.rounds(3, bench.sweeper({ signer }));
  }
  expect([(await bench.sweeps()).length - before, await moves()]).toEqual([0, []]);
  await lookNow();
  await bench.rounds(5);
  expect(await bench.units(address, "PLAIN")).toBe(0n);
});

it("tokens of no list are told of once, and only where the policy has them swept", async () => {
  const told: string[] = [];
  const write = (line: string) => {
    const { msg, asset } = JSON.parse(line);
    if (msg === "a token is not swept") told.push(asset);
  };
  const log = createLogger({ component: "test", level: "warn", destination: { write } });
  const treasury = bench.sweeper({ signer: bench.signer({ contractOf: () => undefined }), log });
  const address = await bench.bench.register("dave");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  bench.files.policy = bench.policyOf({ assets: { TOKEN: ANY_SWEEP } });
  await bench.rounds(1, treasury);
  expect(told).toEqual([]);
  bench.files.policy = bench.policyOf({});
  for (let round = 0; round < 2; round += 1) {
    await lookNow();
    await bench.rounds(1, treasury);
  }
  expect(told).toEqual(["PLAIN"]);
  await lookNow();
  await bench.rounds(5);
  expect(await bench.units(address, "PLAIN")).toBe(0n);
});

it("a token's sweep that was begun by another list gets no gas, and ends for the time being", async () => {
  const address = await bench.bench.register("erin");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  await bench.sweeper().round(signal);
  const states = async () =>
    (await bench.sweeps()).filter((each) => each.address === address).map(({ state }) => state);
  const before = (await moves()).length;
  const other = bench.sweeper({ signer: bench.signer({ contractOf: () => undefined }) });
  await bench.rounds(3, other);
  expect([await states(), (await moves()).length - before]).toEqual([["needs-gas"], 0]);
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`ALTER TABLE sweep DISABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep SET changed_at = changed_at - interval '1 hour'`);
    await tx.query(`ALTER TABLE sweep ENABLE TRIGGER sweep_guard`);
  });
  await bench.rounds(1, other);
  expect(await states()).toEqual(["void"]);
  await lookNow();
  await bench.rounds(5);
  expect([await states(), await bench.units(address, "PLAIN")]).toEqual([["void", "settled"], 0n]);
});

it("a worker without the deposit key takes no nonce for gas that it would never sign for", async () => {
  const address = await bench.bench.register("frank");
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  const sweeper = bench.sweeper();
  await sweeper.round(signal);
  await sweeper.round(signal);
  const stranger = new Lane(
    {
      ...bench.house.context(),
      ...laneRules({
        privateKey: WALLET_KEY,
        chainId: 6940n,
        limits: { gasPriceCapAtoken: 10n ** 9n, gasLimitMax: 10n ** 6n },
        sql: bench.worker,
        files: bench.files,
      }),
      ledger: createLaneLedger(bench.worker),
      guard: createLaneGuard({ database: bench.worker, wallet: WALLET, log: silentLog }),
      node: bench.node,
    },
    "worker",
  );
  const { owner } = bench.bench.ledger;
  const gas = () =>
    owner.query(
      `SELECT w.status, s.nonce::text FROM treasury_move m
         JOIN withdrawal w ON w.id = m.withdrawal_id
         LEFT JOIN nonce_slot s ON s.withdrawal_id = w.id
        WHERE m.destination = $1 ORDER BY m.id`,
      [address],
    );
  bench.house.clock.ms += 3_000;
  await stranger.runRound(signal);
  expect(await gas()).toEqual([{ status: "rejected", nonce: null }]);
  await bench.rounds(1);
  await lookNow();
  await bench.rounds(5);
  expect(await bench.units(address, "PLAIN")).toBe(0n);
});

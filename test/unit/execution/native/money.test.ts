/**
 * Whatever programs do with coins, through modules and by destroying themselves: the journal explains
 * every balance (a block that it does not explain ends the chain), and both engines come to the same block.
 */
import { describe, expect, it } from "@jest/globals";
import { ExecutionChain } from "../../../helpers/chains/execution-chain.js";
import { nativeGenesis, wallets } from "../../../helpers/chains/native-chain.js";
import { createRandom } from "../../../helpers/random.js";
import type { ExecutedBlock } from "../../../../node/store/block-commit.js";
import { CONTRACTS, MoneyPrograms } from "./money-programs.js";

const CHAINS = Math.ceil(Number(process.env["CAUSEWAY_PROGRAMS"] ?? 80) / 10);
const FIRST_SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 1);
const BLOCKS = 6;
const TRANSACTIONS = 5;
const TOKEN = 10n ** 18n;
console.log(`money: seeds from ${FIRST_SEED}, ${CHAINS} chains (CAUSEWAY_PROGRAMS)`);

/** What both engines must agree about; which failure it was may differ. */
function outcomeOf({ committed }: Pick<ExecutedBlock, "committed">) {
  const { block, receipts, journal } = committed;
  const endOf = (error: string | undefined) => (error === "revert" ? error : error && "failure");
  return {
    hash: block.hash,
    receipts: receipts.map(({ status, gasUsed, logs }) => ({ status, gasUsed, logs })),
    changes: journal.transactions.map(({ changes }) =>
      changes.map((change) => ({ ...change, error: endOf(change.error) })),
    ),
    events: journal.transactions.map(({ events }) => events),
  };
}

describe("programs that move coins in every way", () => {
  it("are explained by the journal, and the same on both engines", async () => {
    const seen = new Map<string, number>();
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
    for (let seed = FIRST_SEED; seed < FIRST_SEED + CHAINS; seed++) {
      const random = createRandom(seed);
      const genesis = nativeGenesis({ "staking.unbonding_time": "4s" });
      const programs = new MoneyPrograms(random, genesis.params);
      const alloc = new Map(genesis.alloc);
      for (const address of CONTRACTS) {
        const balanceAtoken = TOKEN * BigInt(2 + random.integer(5));
        alloc.set(address, { balanceAtoken, code: `0x${programs.code()}`, storage: new Map() });
      }
      const chain = await ExecutionChain.open({ ...genesis, alloc });
      const nonces = wallets.map(() => 0);
      for (let height = 1; height <= BLOCKS; height++) {
        const raws = [];
        for (let index = 0; index < TRANSACTIONS; index++) {
          const who = 2 + random.integer(3);
          const nonce = nonces[who] ?? 0;
          nonces[who] = nonce + 1;
          const isCreation = random.integer(3) === 0;
          const init = programs.code() + (random.integer(3) === 0 ? programs.destroy() : "");
          raws.push(
            (await wallets[who]?.signTransaction({
              type: 0,
              chainId: genesis.evmChainId,
              nonce,
              gasPrice: 1_000n,
              gasLimit: random.pick([500_000n, 2_000_000n, 6_000_000n]),
              to: isCreation ? null : random.pick(CONTRACTS),
              data: isCreation ? `0x${init}` : "0x",
              value: random.pick([0n, 1n, TOKEN, 2n * TOKEN]),
            })) ?? "",
          );
        }
        const { executed } = await chain.execute(raws, [], "ethereumjs");
        const mined = await chain.mine(raws);
        expect(mined.outcomes.filter(({ included }) => !included)).toEqual([]);
        const place = { seed, height };
        const [own, library] = [mined, executed].map(outcomeOf);
        expect({ ...place, ...own }).toEqual({ ...place, ...library });
        for (const { status } of mined.committed.receipts) count(`status ${status}`);
        for (const { changes } of mined.committed.journal.transactions) {
          for (const { reason, effective } of changes) if (effective) count(reason);
        }
      }
      await chain.close();
    }
    // They must do all of it, else they show nothing.
    const wanted = ["CALL", "CREATE", "CREATE2", "DELEGATE", "SELFDESTRUCT", "DESTRUCT", "CLAIM"];
    const missing = ["status 0", "status 1", ...wanted].filter((what) => !seen.has(what));
    expect(missing).toEqual([]);
  });
});

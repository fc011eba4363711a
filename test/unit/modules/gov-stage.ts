/** A chain on which tests of governance propose, vote and look. */
import { type Address, toBech32 } from "../../../chain/address.js";
import type { AnyMessage, ProtoMessage } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { type ProposalRecord } from "../../../node/modules/gov/proposal-record.js";
import { submitProposal } from "../../../node/modules/gov/proposing.js";
import { plainVote, voteOn } from "../../../node/modules/gov/voting.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

/** One TOKEN. */
export const TOKEN = 10n ** 18n;
/** Account of governance, as messages name it. */
export const GOV = toBech32(MODULE_ACCOUNTS.gov);
const STAKES = [100, 80, 60, 40];
/** Those who have stake or coins; the first of them are the operators. */
export const PEOPLE = Array.from({ length: 12 }, (_, index) => accountAt(index));
/** Operators of the validators. */
export const OPERATORS = PEOPLE.slice(0, STAKES.length);
/** Three without stake. */
export const [ALICE, BOB, CAROL] = [accountAt(20), accountAt(21), accountAt(22)];

/** A chain of modules with short times, whose people are rich. */
export function newChain(params: Readonly<Record<string, string>> = {}): ModuleChain {
  const chain = new ModuleChain(
    stakedGenesis(STAKES, {
      "gov.voting_period": "20s",
      "gov.max_deposit_period": "20s",
      "gov.expedited_voting_period": "8s",
      "staking.unbonding_time": "6s",
      ...params,
    }),
  );
  for (const person of [...PEOPLE, ALICE, BOB, CAROL]) chain.mint(person, 10_000n * TOKEN);
  return chain;
}

/** A message of a proposal. */
export function anyOf(typeUrl: string, message: ProtoMessage): AnyMessage {
  const schema = schemaOf(typeUrl);
  if (schema === undefined) throw new Error(`no schema of ${typeUrl}`);
  return { typeUrl, schema, message };
}

/** What a test asks for; the rest is usual. */
interface Asked {
  readonly messages?: readonly AnyMessage[];
  readonly deposit?: bigint;
  readonly isExpedited?: boolean;
  readonly by?: Address;
}

/** Submits a proposal; throws what it is refused with. */
export function submit(chain: ModuleChain, asked: Asked = {}): ProposalRecord {
  const { messages = [], deposit = 50n * TOKEN, isExpedited = false, by = ALICE } = asked;
  let made: ProposalRecord | undefined;
  const failure = chain.run((context) => {
    made = submitProposal(
      context,
      {
        proposer: by,
        messages,
        initialDepositAtoken: deposit,
        title: "a proposal",
        summary: "what it is about",
        metadata: "words",
        isExpedited,
      },
      handlerOf,
    );
  });
  if (failure !== undefined) throw failure;
  if (made === undefined) throw new Error("nothing was made");
  return made;
}

/** Votes with all the weight on one option; throws what it is refused with. */
export function vote(
  chain: ModuleChain,
  { id }: ProposalRecord,
  voter: Address,
  option: number,
): void {
  const failure = chain.run((context) => {
    voteOn(context, id, { voter, options: plainVote(option), metadata: "" });
  });
  if (failure !== undefined) throw failure;
}

/** All operators vote, and blocks end until the time of the votes is over. */
export function pass(chain: ModuleChain, proposal: ProposalRecord, option = 1): void {
  for (const operator of OPERATORS) vote(chain, proposal, operator, option);
  chain.endBlock({ seconds: 20 });
}

/** Attributes of the events of a type so far. */
export function eventsOf(chain: ModuleChain, wanted: string) {
  return chain.events.filter(({ type }) => type === wanted).map(({ values }) => values);
}

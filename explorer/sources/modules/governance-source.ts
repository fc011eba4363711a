/** What pages ask about governance: proposals, what they do, who paid and voted, parameters, plans. */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import {
  type AnswerObject,
  readBoolean,
  readDecimal,
  readList,
  readObject,
  readString,
} from "../../../rpc-client/answer-fields.js";
import { badAnswer } from "../../../rpc-client/errors.js";
import { ModuleFault, type RestClient } from "./rest-client.js";
import {
  coinsAtoken,
  pageQuery,
  readAccount,
  readFraction,
  readPage,
  readTime,
  type RestPage,
  rowsOf,
  textIn,
} from "./rest-fields.js";

/** Where a proposal stands. */
export type ProposalStatus = "deposit" | "voting" | "passed" | "rejected" | "failed";

/** Stake by option, atoken. */
export interface Tally {
  readonly yes: bigint;
  readonly abstain: bigint;
  readonly no: bigint;
  readonly veto: bigint;
}

/** A proposal; texts and messages are its proposer's. */
export interface Proposal {
  readonly id: bigint;
  readonly title: string;
  readonly summary: string;
  readonly metadata: string;
  readonly proposer: Address | undefined;
  readonly status: ProposalStatus;
  readonly isExpedited: boolean;
  /** Why its messages were not carried out. */
  readonly failedReason: string;
  /** As JSON. */
  readonly messages: readonly AnswerObject[];
  readonly depositAtoken: Atoken;
  /** Votes as they were counted at the end; zeros before. */
  readonly result: Tally;
  readonly submittedAtSeconds: number | undefined;
  readonly depositEndSeconds: number | undefined;
  readonly votingStartSeconds: number | undefined;
  readonly votingEndSeconds: number | undefined;
}

/** Options by their names in answers. */
export type VoteOption = keyof Tally;

/** A vote, whole or split. */
export interface Vote {
  readonly voter: Address;
  /** Fractions with 18 decimals. */
  readonly options: readonly { readonly option: VoteOption; readonly weight: bigint }[];
}

/** Coins that somebody stood in with. */
export interface Deposit {
  readonly depositor: Address;
  readonly amountAtoken: Atoken;
}

/** What has to be reached; fractions with 18 decimals. */
export interface VotingRules {
  readonly quorum: bigint;
  readonly threshold: bigint;
  readonly expeditedThreshold: bigint;
  readonly vetoThreshold: bigint;
  readonly minDepositAtoken: Atoken;
  readonly expeditedMinDepositAtoken: Atoken;
}

/** A planned change of the rules. */
export interface UpgradePlan {
  readonly name: string;
  readonly height: bigint;
  readonly info: string;
}

/** Parameters of one module, as JSON. */
export interface ModuleParameters {
  readonly module: string;
  readonly values: readonly (readonly [name: string, value: unknown])[];
}

/** Rows of the list of proposals, and of votes and deposits. */
const PROPOSALS_PER_PAGE = 30;
const ROWS_PER_PAGE = 50;

const GOV = "/cosmos/gov/v1";

/** Where each module's parameters are. */
const PARAMETERS = [
  ["staking", "/cosmos/staking/v1beta1/params"],
  ["slashing", "/cosmos/slashing/v1beta1/params"],
  ["distribution", "/cosmos/distribution/v1beta1/params"],
  ["gov", `${GOV}/params/voting`],
  ["mint", "/cosmos/mint/v1beta1/params"],
  ["feemarket", "/cosmos/evm/feemarket/v1/params"],
  ["auth", "/cosmos/auth/v1beta1/params"],
  ["bank", "/cosmos/bank/v1beta1/params"],
] as const;

/** Reads of governance and upgrades. Faults as of `RestClient.get`, and BAD_ANSWER. */
export class GovernanceSource {
  constructor(private readonly rest: RestClient) {}

  /** Proposals, newest first. */
  async proposals(place: string | undefined, signal: AbortSignal): Promise<RestPage<Proposal>> {
    const query = pageQuery(PROPOSALS_PER_PAGE, place, { "pagination.reverse": true });
    return readPage(await this.ask(`${GOV}/proposals`, query, signal), "proposals", proposalOf);
  }

  /** One proposal. */
  async proposal(id: bigint, signal: AbortSignal): Promise<Proposal | undefined> {
    const found = await this.rest.get(`${GOV}/proposals/${id}`, {}, signal);
    return found === undefined ? undefined : proposalOf(readObject(found["proposal"], "proposal"));
  }

  /** How it stands now; undefined where there are too many votes to count them for a question. */
  async tally(id: bigint, signal: AbortSignal): Promise<Tally | undefined> {
    try {
      const found = await this.ask(`${GOV}/proposals/${id}/tally`, {}, signal);
      return tallyOf(found["tally"]);
    } catch (error) {
      if (error instanceof ModuleFault && error.code === "EXHAUSTED") return undefined;
      throw error;
    }
  }

  /** Who voted. */
  async votes(id: bigint, place: string | undefined, signal: AbortSignal): Promise<RestPage<Vote>> {
    const answer = await this.ask(
      `${GOV}/proposals/${id}/votes`,
      pageQuery(ROWS_PER_PAGE, place),
      signal,
    );
    return readPage(answer, "votes", voteOf);
  }

  /** Who stood in for it; nobody any more when it is over. */
  async deposits(
    id: bigint,
    place: string | undefined,
    signal: AbortSignal,
  ): Promise<RestPage<Deposit>> {
    const path = `${GOV}/proposals/${id}/deposits`;
    return readPage(
      await this.ask(path, pageQuery(ROWS_PER_PAGE, place), signal),
      "deposits",
      (row) => ({
        depositor: readAccount(row["depositor"], "depositor"),
        amountAtoken: coinsAtoken(row["amount"]),
      }),
    );
  }

  /** What has to be reached. */
  async rules(signal: AbortSignal): Promise<VotingRules> {
    const answer = await this.ask(`${GOV}/params/voting`, {}, signal);
    const params = readObject(answer["params"], "params");
    return {
      quorum: readFraction(params["quorum"], "quorum"),
      threshold: readFraction(params["threshold"], "threshold"),
      expeditedThreshold: readFraction(params["expedited_threshold"], "expedited_threshold"),
      vetoThreshold: readFraction(params["veto_threshold"], "veto_threshold"),
      minDepositAtoken: coinsAtoken(params["min_deposit"]),
      expeditedMinDepositAtoken: coinsAtoken(params["expedited_min_deposit"]),
    };
  }

  /** The planned upgrade; undefined without one. */
  async plan(signal: AbortSignal): Promise<UpgradePlan | undefined> {
    const answer = await this.ask("/cosmos/upgrade/v1beta1/current_plan", {}, signal);
    if (answer["plan"] === null || answer["plan"] === undefined) return undefined;
    const plan = readObject(answer["plan"], "plan");
    return {
      name: readString(plan["name"], "name"),
      height: readDecimal(plan["height"], "height"),
      info: textIn(plan["info"]),
    };
  }

  /** Parameters of all modules that the chain has. */
  async parameters(signal: AbortSignal): Promise<readonly ModuleParameters[]> {
    const found = await Promise.all(
      PARAMETERS.map(async ([module, path]): Promise<readonly ModuleParameters[]> => {
        try {
          const { params } = await this.ask(path, {}, signal);
          return [{ module, values: Object.entries(readObject(params ?? {}, "params")) }];
        } catch (error) {
          if (error instanceof ModuleFault && error.code === "NOT_SERVED") return [];
          throw error;
        }
      }),
    );
    return found.flat();
  }

  private async ask(...question: Parameters<RestClient["get"]>): Promise<AnswerObject> {
    return (await this.rest.get(...question)) ?? {};
  }
}

const STATUSES: ReadonlyMap<unknown, ProposalStatus> = new Map([
  ["PROPOSAL_STATUS_DEPOSIT_PERIOD", "deposit"],
  ["PROPOSAL_STATUS_VOTING_PERIOD", "voting"],
  ["PROPOSAL_STATUS_PASSED", "passed"],
  ["PROPOSAL_STATUS_REJECTED", "rejected"],
  ["PROPOSAL_STATUS_FAILED", "failed"],
]);

function proposalOf(row: AnswerObject): Proposal {
  const status = STATUSES.get(row["status"]);
  if (status === undefined) throw badAnswer("status of a proposal");
  const proposer = textIn(row["proposer"]);
  return {
    id: readDecimal(row["id"], "id"),
    title: textIn(row["title"]),
    summary: textIn(row["summary"]),
    metadata: textIn(row["metadata"]),
    proposer: proposer === "" ? undefined : readAccount(proposer, "proposer"),
    status,
    isExpedited: readBoolean(row["expedited"] ?? false, "expedited"),
    failedReason: textIn(row["failed_reason"]),
    messages: readList(row["messages"] ?? [], "messages").map((one) => readObject(one, "message")),
    depositAtoken: coinsAtoken(row["total_deposit"]),
    result: tallyOf(row["final_tally_result"]),
    submittedAtSeconds: readTime(row["submit_time"], "submit_time"),
    depositEndSeconds: readTime(row["deposit_end_time"], "deposit_end_time"),
    votingStartSeconds: readTime(row["voting_start_time"], "voting_start_time"),
    votingEndSeconds: readTime(row["voting_end_time"], "voting_end_time"),
  };
}

function tallyOf(value: unknown): Tally {
  const counts = readObject(value, "tally");
  const count = (name: string) => readDecimal(counts[name], name);
  return {
    yes: count("yes_count"),
    abstain: count("abstain_count"),
    no: count("no_count"),
    veto: count("no_with_veto_count"),
  };
}

const OPTIONS: ReadonlyMap<unknown, VoteOption> = new Map([
  ["VOTE_OPTION_YES", "yes"],
  ["VOTE_OPTION_ABSTAIN", "abstain"],
  ["VOTE_OPTION_NO", "no"],
  ["VOTE_OPTION_NO_WITH_VETO", "veto"],
]);

function voteOf(row: AnswerObject): Vote {
  return {
    voter: readAccount(row["voter"], "voter"),
    options: rowsOf(row, "options").map((one) => {
      const option = OPTIONS.get(one["option"]);
      if (option === undefined) throw badAnswer("option of a vote");
      return { option, weight: readFraction(one["weight"], "weight") };
    }),
  };
}

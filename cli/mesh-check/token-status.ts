/**
 * Which ERC-20s the server says it does not believe: from a block on it leaves their operations
 * out and their balances where they were, so there is nothing to hold against the node.
 */
import {
  readBoolean,
  readCount,
  readObject,
  readOptional,
  readString,
} from "../../rpc-client/answer-fields.js";
import type { CurrencyIdentity } from "./identity.js";
import type { MeshClient } from "./mesh-client.js";

/** A token without operations from a block on. */
export interface QuarantinedToken {
  readonly contractAddress: string;
  readonly fromIndex: number;
  readonly reason: string;
}

/** The sidecar's own method of /call; other servers have none and quarantine nothing. */
const METHOD = "token_status";

/** Asks once per token and remembers. */
export class TokenStatuses {
  readonly #asked = new Map<string, Promise<QuarantinedToken | undefined>>();
  readonly #found = new Map<string, QuarantinedToken>();

  /** @param callMethods what /network/options lists */
  constructor(
    private readonly client: MeshClient,
    private readonly callMethods: ReadonlySet<string>,
  ) {}

  /** All that were found, by contract. */
  found(): QuarantinedToken[] {
    return [...this.#found.values()];
  }

  /** True when the currency's operations are left out of the block. */
  async isQuarantined(currency: CurrencyIdentity, index: number): Promise<boolean> {
    const { contractAddress } = currency;
    if (contractAddress === undefined || !this.callMethods.has(METHOD)) return false;
    const token = await this.ask(contractAddress);
    return token !== undefined && token.fromIndex <= index;
  }

  /** Remembers the token's status; contracts may be written in any case. */
  ask(contract: string): Promise<QuarantinedToken | undefined> {
    const contractAddress = contract.toLowerCase();
    const known = this.#asked.get(contractAddress);
    if (known !== undefined) return known;
    const asking = this.read(contractAddress);
    this.#asked.set(contractAddress, asking);
    return asking;
  }

  private async read(contractAddress: string): Promise<QuarantinedToken | undefined> {
    const parameters = { contract_address: contractAddress };
    const result = readObject(await this.client.call(METHOD, parameters), "result");
    if (!readBoolean(result["quarantined"], "quarantined")) return undefined;
    const token = {
      contractAddress,
      fromIndex: readCount(result["quarantined_from_index"], "quarantined_from_index"),
      reason: readOptional(result["reason"], "reason", readString) ?? "",
    };
    this.#found.set(contractAddress, token);
    return token;
  }
}

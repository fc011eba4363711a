/** Our genesis as CometBFT's `GenesisDoc`: the whole of our file is its `app_state`. */
import { formatTime, msToNs } from "../../../../chain/consensus/block-id.js";
import type { ConsensusParams } from "../../../../chain/consensus/consensus-params.js";
import { paramsJson, publicKeyJson, upperHex } from "./encode.js";
import { JsonPieces } from "./json-pieces.js";
import type { CometGenesis } from "../ports.js";

/** Bytes of one chunk of `genesis_chunked`. */
const CHUNK_BYTES = 16 * 1024 * 1024;

/** The results of both routes, made once: a genesis may have megabytes, and anybody may ask for it. */
export interface ServedGenesis {
  /** Undefined where it has more than one chunk. */
  readonly whole: JsonPieces | undefined;
  readonly chunks: readonly JsonPieces[];
}

/** Builds what the two routes answer. */
export function serveGenesis(genesis: CometGenesis, params: ConsensusParams): ServedGenesis {
  const appState: unknown = JSON.parse(genesis.appState);
  const document = {
    genesis_time: formatTime(msToNs(genesis.timeMs)),
    chain_id: genesis.chainId,
    initial_height: "1",
    consensus_params: paramsJson(params, genesis.appVersion),
    validators: genesis.validators.map(({ address, publicKey, power, name }) => ({
      address: upperHex(address),
      pub_key: publicKeyJson(publicKey),
      power: power.toString(),
      name,
    })),
    app_hash: upperHex(genesis.appHash),
    app_state: appState,
  };
  const bytes = Buffer.from(JSON.stringify(document), "utf8");
  const total = Math.ceil(bytes.length / CHUNK_BYTES);
  const chunks = Array.from({ length: total }, (_, chunk) => {
    const data = bytes.subarray(chunk * CHUNK_BYTES, (chunk + 1) * CHUNK_BYTES);
    const start = `{"chunk":"${chunk}","total":"${total}","data":"`;
    return new JsonPieces([start, Buffer.from(data.toString("base64"), "latin1"), '"}']);
  });
  const whole = total > 1 ? undefined : new JsonPieces(['{"genesis":', bytes, "}"]);
  return { whole, chunks };
}

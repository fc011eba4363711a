/** `connection_status` of a peer in `net_info`: CometBFT's ConnectionStatus, names as in Go. */
import { formatTime, msToNs } from "../../../../chain/consensus/block-id.js";
import type { NetworkPeer } from "../../../p2p/network-port.js";

/** CometBFT's id of the channel for consensus, which is one stream with the transactions here. */
const STATE_CHANNEL = 0x20;

/** Durations are nanoseconds, as everywhere in Go. */
export function connectionJson(
  peer: Pick<
    NetworkPeer,
    "connectedMs" | "sending" | "receiving" | "unsentBytes" | "maxUnsentBytes"
  >,
) {
  return {
    Duration: nanoseconds(peer.connectedMs),
    SendMonitor: monitorJson(peer.sending),
    RecvMonitor: monitorJson(peer.receiving),
    // Sizes of the queue are bytes here, not messages.
    Channels: [
      {
        ID: STATE_CHANNEL,
        SendQueueCapacity: peer.maxUnsentBytes.toString(),
        SendQueueSize: peer.unsentBytes.toString(),
        Priority: "1",
        RecentlySent: peer.sending.currentRate.toString(),
      },
    ],
  };
}

/** libs/flowrate's Status; a connection has no end that could be foretold. */
function monitorJson(flow: NetworkPeer["sending"]) {
  return {
    Start: formatTime(msToNs(flow.startTimeMs)),
    Bytes: flow.totalBytes.toString(),
    Samples: flow.sampleCount.toString(),
    InstRate: flow.instantRate.toString(),
    CurRate: flow.currentRate.toString(),
    AvgRate: flow.averageRate.toString(),
    PeakRate: flow.peakRate.toString(),
    BytesRem: "0",
    Duration: nanoseconds(flow.durationMs),
    Idle: nanoseconds(flow.idleMs),
    TimeRem: "0",
    Progress: 0,
    Active: true,
  };
}

function nanoseconds(timeMs: number): string {
  return (BigInt(Math.floor(timeMs)) * 1_000_000n).toString();
}

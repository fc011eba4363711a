// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.17;

import {Dec, PageRequest, PageResponse} from "./Types.sol";

/// @title Slashing: who signs blocks, and how a jailed validator comes back.
/// @custom:address 0x0000000000000000000000000000000000000806
interface ISlashing {
    /// @dev What is known of a validator's signing.
    struct SigningInfo {
        /// Address of its key of consensus.
        address validatorAddress;
        int64 startHeight;
        /// Blocks since then.
        int64 indexOffset;
        /// Unix seconds.
        int64 jailedUntil;
        /// Out for ever.
        bool tombstoned;
        int64 missedBlocksCounter;
    }

    /// @dev Parameters of the module; times are seconds.
    struct Params {
        int64 signedBlocksWindow;
        Dec minSignedPerWindow;
        int64 downtimeJailDuration;
        Dec slashFractionDoubleSign;
        Dec slashFractionDowntime;
    }

    /// @notice A jailed validator came back.
    event ValidatorUnjailed(address indexed validator);

    /// @notice The sender's jailed validator comes back, when its time is over.
    /// @param validatorAddress operator; must be `msg.sender`
    function unjail(address validatorAddress) external returns (bool success);

    /// @notice Signing of the validator with an address of consensus.
    function getSigningInfo(address consAddress) external view returns (SigningInfo memory signingInfo);

    /// @notice Signing of all validators.
    function getSigningInfos(PageRequest calldata pagination)
        external
        view
        returns (SigningInfo[] memory signingInfos, PageResponse memory pageResponse);

    /// @notice Parameters of the module.
    function getParams() external view returns (Params memory params);
}

// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.17;

import {Coin, Dec, DecCoin, PageRequest, PageResponse} from "./Types.sol";

/// @title Distribution: rewards of delegators, commission of validators, the community pool.
/// @notice Whoever calls acts for itself: the first account of every changing function must be
/// `msg.sender`. Validators are named by the bech32 text of their operator (`addrvaloper1...`).
/// Decimal amounts have 18 decimals. What fails reverts with `Error(string)`.
/// @custom:address 0x0000000000000000000000000000000000000801
interface IDistribution {
    /// @dev A slash of a validator.
    struct ValidatorSlashEvent {
        /// Its number among the validator's slashes, from 1.
        uint64 validatorPeriod;
        Dec fraction;
    }

    /// @dev What a validator can claim.
    struct ValidatorDistributionInfo {
        /// bech32 of the operator's account.
        string operatorAddress;
        DecCoin[] selfBondRewards;
        DecCoin[] commission;
    }

    /// @dev Rewards of one delegation.
    struct DelegationDelegatorReward {
        string validatorAddress;
        DecCoin[] reward;
    }

    /// @notice An account claimed its rewards; `amount` is the sum over its validators.
    event ClaimRewards(address indexed delegatorAddress, uint256 amount);

    /// @notice An account chose where its rewards go.
    /// @param withdrawerAddress bech32
    event SetWithdrawerAddress(address indexed caller, string withdrawerAddress);

    /// @notice Rewards of a delegation were paid: asked for, or because the delegation changed.
    event WithdrawDelegatorReward(address indexed delegatorAddress, address indexed validatorAddress, uint256 amount);

    /// @notice A validator's commission was paid.
    /// @param validatorAddress bech32 of the operator; the topic is its hash
    event WithdrawValidatorCommission(string indexed validatorAddress, uint256 commission);

    /// @notice Coins were given to the community pool.
    event FundCommunityPool(address indexed depositor, string denom, uint256 amount);

    /// @notice Coins were given to a validator and its delegators.
    event DepositValidatorRewardsPool(
        address indexed depositor, address indexed validatorAddress, string denom, uint256 amount
    );

    /// @notice Pays the sender's rewards of its first `maxRetrieve` validators.
    function claimRewards(address delegatorAddress, uint32 maxRetrieve) external returns (bool success);

    /// @notice Chooses where the sender's rewards and commission go.
    /// @param withdrawerAddress bech32; not an account of the chain itself
    function setWithdrawAddress(address delegatorAddress, string calldata withdrawerAddress)
        external
        returns (bool success);

    /// @notice Pays the rewards of one delegation of the sender.
    /// @return amount what was paid; empty for nothing
    function withdrawDelegatorRewards(address delegatorAddress, string calldata validatorAddress)
        external
        returns (Coin[] memory amount);

    /// @notice Pays the commission of the sender's validator.
    function withdrawValidatorCommission(string calldata validatorAddress) external returns (Coin[] memory amount);

    /// @notice Gives coins of the sender to the community pool.
    function fundCommunityPool(address depositor, Coin[] calldata amount) external returns (bool success);

    /// @notice Gives coins of the sender to a validator and its delegators, as a block's rewards are.
    function depositValidatorRewardsPool(address depositor, string calldata validatorAddress, Coin[] calldata amount)
        external
        returns (bool success);

    /// @notice Commission and rewards of the own delegation of a validator.
    function validatorDistributionInfo(string calldata validatorAddress)
        external
        view
        returns (ValidatorDistributionInfo memory distributionInfo);

    /// @notice What a validator and all its delegators can claim.
    function validatorOutstandingRewards(string calldata validatorAddress)
        external
        view
        returns (DecCoin[] memory rewards);

    /// @notice Commission that a validator can claim.
    function validatorCommission(string calldata validatorAddress) external view returns (DecCoin[] memory commission);

    /// @notice Slashes of a validator from one height to another, both included.
    function validatorSlashes(
        string calldata validatorAddress,
        uint64 startingHeight,
        uint64 endingHeight,
        PageRequest calldata pageRequest
    ) external view returns (ValidatorSlashEvent[] memory slashes, PageResponse memory pageResponse);

    /// @notice Rewards of a delegation that were not paid yet.
    function delegationRewards(address delegatorAddress, string calldata validatorAddress)
        external
        view
        returns (DecCoin[] memory rewards);

    /// @notice Rewards of all delegations of an account.
    function delegationTotalRewards(address delegatorAddress)
        external
        view
        returns (DelegationDelegatorReward[] memory rewards, DecCoin[] memory total);

    /// @notice Validators that an account delegates to, bech32.
    function delegatorValidators(address delegatorAddress) external view returns (string[] memory validators);

    /// @notice Where an account's rewards go, bech32.
    function delegatorWithdrawAddress(address delegatorAddress) external view returns (string memory withdrawAddress);

    /// @notice What governance may spend.
    function communityPool() external view returns (DecCoin[] memory coins);
}

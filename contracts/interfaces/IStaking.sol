// SPDX-License-Identifier: Apache-2.0
pragma solidity >=0.8.17;

import {Coin, PageRequest, PageResponse} from "./Types.sol";

/// @title Staking: validators, delegations and what is on its way out.
/// @notice Whoever calls acts for itself: the first account of every changing function must be
/// `msg.sender`. Validators are named by the bech32 text of their operator (`addrvaloper1...`).
/// Amounts are atoken. What fails reverts with `Error(string)` and has changed nothing.
/// @custom:address 0x0000000000000000000000000000000000000800
interface IStaking {
    /// @dev As `cosmos.staking.v1beta1.BondStatus`.
    enum BondStatus {
        Unspecified,
        Unbonded,
        Unbonding,
        Bonded
    }

    /// @dev What a validator says of itself.
    struct Description {
        string moniker;
        string identity;
        string website;
        string securityContact;
        string details;
    }

    /// @dev Fractions, 10^18 for the whole.
    struct CommissionRates {
        uint256 rate;
        uint256 maxRate;
        uint256 maxChangeRate;
    }

    /// @dev One validator.
    struct Validator {
        /// The operator as 0x text with checksum; empty where there is no such validator.
        string operatorAddress;
        /// Its ed25519 key of consensus, base64.
        string consensusPubkey;
        bool jailed;
        BondStatus status;
        /// Stake of all its delegators, atoken.
        uint256 tokens;
        /// Shares of all its delegators, 10^-18.
        uint256 delegatorShares;
        Description description;
        int64 unbondingHeight;
        /// Unix seconds.
        int64 unbondingTime;
        /// 10^18 for the whole.
        uint256 commission;
        uint256 minSelfDelegation;
    }

    /// @dev Stake that moved and still answers for its first validator.
    struct RedelegationEntry {
        int64 creationHeight;
        /// Unix seconds.
        int64 completionTime;
        uint256 initialBalance;
        /// Shares that it got, 10^-18.
        uint256 sharesDst;
    }

    /// @dev Redelegations of one account from one validator to another.
    struct Redelegation {
        string delegatorAddress;
        string validatorSrcAddress;
        string validatorDstAddress;
        RedelegationEntry[] entries;
    }

    /// @dev An entry with what it is worth now.
    struct RedelegationEntryResponse {
        RedelegationEntry redelegationEntry;
        uint256 balance;
    }

    /// @dev Redelegations with what their entries are worth now.
    struct RedelegationResponse {
        Redelegation redelegation;
        RedelegationEntryResponse[] entries;
    }

    /// @dev Stake that is on its way out.
    struct UnbondingDelegationEntry {
        int64 creationHeight;
        /// Unix seconds.
        int64 completionTime;
        uint256 initialBalance;
        /// What slashes have left of it.
        uint256 balance;
        uint64 unbondingId;
        /// Always 0.
        int64 unbondingOnHoldRefCount;
    }

    /// @dev What one account has on its way out of one validator; empty where there is nothing.
    struct UnbondingDelegation {
        string delegatorAddress;
        string validatorAddress;
        UnbondingDelegationEntry[] entries;
    }

    /// @notice A validator was registered.
    /// @param value its own stake
    event CreateValidator(address indexed validatorAddress, uint256 value);

    /// @notice A validator changed; both values are those that hold now.
    event EditValidator(address indexed validatorAddress, int256 commissionRate, int256 minSelfDelegation);

    /// @notice Coins became stake.
    /// @param newShares shares that they gave, 10^-18
    event Delegate(address indexed delegatorAddress, address indexed validatorAddress, uint256 amount, uint256 newShares);

    /// @notice Stake began to leave.
    /// @param amount what comes back unless it is slashed
    /// @param completionTime when, Unix seconds
    event Unbond(address indexed delegatorAddress, address indexed validatorAddress, uint256 amount, uint256 completionTime);

    /// @notice Stake moved to another validator.
    /// @param completionTime until when it answers for the first one, Unix seconds
    event Redelegate(
        address indexed delegatorAddress,
        address indexed validatorSrcAddress,
        address indexed validatorDstAddress,
        uint256 amount,
        uint256 completionTime
    );

    /// @notice Stake that was on its way out stays.
    event CancelUnbondingDelegation(
        address indexed delegatorAddress, address indexed validatorAddress, uint256 amount, uint256 creationHeight
    );

    /// @notice Registers the sender as a validator. Only for transactions sent to this address
    /// directly: no contract can call it. Burns the chain's registration fee.
    /// @param pubkey ed25519 key of consensus, base64
    /// @param value own stake, at least `minSelfDelegation`
    function createValidator(
        Description calldata description,
        CommissionRates calldata commissionRates,
        uint256 minSelfDelegation,
        address validatorAddress,
        string calldata pubkey,
        uint256 value
    ) external returns (bool success);

    /// @notice Changes the sender's validator. Only for transactions sent to this address directly.
    /// @param description texts; `[do-not-modify]` leaves one as it is
    /// @param commissionRate 10^18 for the whole; -1 leaves it as it is
    /// @param minSelfDelegation -1 leaves it as it is; it can only rise
    function editValidator(
        Description calldata description,
        address validatorAddress,
        int256 commissionRate,
        int256 minSelfDelegation
    ) external returns (bool success);

    /// @notice Coins of the sender become stake. Rewards of the delegation so far are paid.
    function delegate(address delegatorAddress, string calldata validatorAddress, uint256 amount)
        external
        returns (bool success);

    /// @notice Stake of the sender begins to leave; its coins come at the end of the unbonding time.
    /// @return completionTime Unix seconds
    function undelegate(address delegatorAddress, string calldata validatorAddress, uint256 amount)
        external
        returns (int64 completionTime);

    /// @notice Stake of the sender moves to another validator at once.
    /// @return completionTime until when it answers for the first one, Unix seconds
    function redelegate(
        address delegatorAddress,
        string calldata validatorSrcAddress,
        string calldata validatorDstAddress,
        uint256 amount
    ) external returns (int64 completionTime);

    /// @notice Stake of the sender that began to leave at a height stays.
    function cancelUnbondingDelegation(
        address delegatorAddress,
        string calldata validatorAddress,
        uint256 amount,
        uint256 creationHeight
    ) external returns (bool success);

    /// @notice Shares and value of a delegation; zero where there is none.
    function delegation(address delegatorAddress, string calldata validatorAddress)
        external
        view
        returns (uint256 shares, Coin memory balance);

    /// @notice What an account has on its way out of a validator.
    function unbondingDelegation(address delegatorAddress, string calldata validatorAddress)
        external
        view
        returns (UnbondingDelegation memory unbondingDelegation);

    /// @notice The validator of an operator; empty texts and zeros where there is none.
    function validator(address validatorAddress) external view returns (Validator memory validator);

    /// @notice Validators with a status (`BOND_STATUS_BONDED`, ...); all of them for an empty text.
    function validators(string calldata status, PageRequest calldata pageRequest)
        external
        view
        returns (Validator[] memory validators, PageResponse memory pageResponse);

    /// @notice Redelegations of an account between two validators; empty where there is none.
    function redelegation(
        address delegatorAddress,
        string calldata srcValidatorAddress,
        string calldata dstValidatorAddress
    ) external view returns (Redelegation memory redelegation);

    /// @notice Redelegations of an account, or away from a validator where the account is zero.
    /// Empty texts stand for any validator.
    function redelegations(
        address delegatorAddress,
        string calldata srcValidatorAddress,
        string calldata dstValidatorAddress,
        PageRequest calldata pageRequest
    ) external view returns (RedelegationResponse[] memory response, PageResponse memory pageResponse);
}

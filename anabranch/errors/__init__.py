"""All errors of Anabranch.

::

    AnabranchError
    ├── StoreError                      names and bytes
    │   ├── NotFound
    │   ├── AlreadyExists
    │   ├── PutOutcomeUnknown
    │   ├── StorePermissionDenied
    │   │   └── NoCredentials
    │   ├── NoSuchBucket
    │   ├── WrongRegion
    │   ├── MissingConnector
    │   ├── StoreFull
    │   └── UnknownStore
    ├── TableError                      what lies in the table's folder
    │   ├── NotATable
    │   ├── VersionNotFound
    │   │   ├── VersionCleanedUp
    │   │   ├── VersionReplaced
    │   │   ├── ChangeStartAfterLatest
    │   │   └── StreamVersionsLost
    │   ├── StreamStopped               why a stream stops
    │   │   ├── StreamMetadataChanged
    │   │   ├── StreamSchemaIncompatible
    │   │   ├── StreamDeletes
    │   │   ├── StreamChanges
    │   │   ├── StreamTableReplaced
    │   │   └── InvalidStreamOffset
    │   ├── TimestampBeforeEarliestCommit
    │   ├── TimestampAfterLatestCommit
    │   ├── CorruptLog
    │   ├── LiveFilesNotConfirmed
    │   ├── CorruptVector
    │   ├── UnsupportedVector
    │   ├── FileOutsideTable
    │   ├── InvalidPartitionValue
    │   ├── MissingDataFile
    │   │   ├── RestoreFilesMissing
    │   │   └── ChangeFilesMissing
    │   └── UnsupportedFeature
    ├── InputError                      the caller's request is refused (also a pyspark AnalysisException)
    │   ├── InvalidCondition
    │   │   ├── UnreadableExpression    (also a pyspark ParseException)
    │   │   ├── Nondeterministic
    │   │   ├── RuleRefused
    │   │   ├── ConstraintNotBoolean
    │   │   ├── DefaultDoesNotFit
    │   │   ├── AmbiguousReplaceColumns
    │   │   └── UnknownReplaceColumns
    │   ├── InvalidConstraintName
    │   ├── TableWithoutColumns
    │   ├── UnknownColumn
    │   ├── SchemaMismatch
    │   │   └── GeneratedTypeMismatch
    │   ├── InvalidSchema
    │   ├── InvalidCharactersInColumnNames
    │   ├── LoneSurrogate
    │   ├── UnsupportedType
    │   │   └── UnwritableVoid
    │   ├── ValueRefused
    │   │   ├── InvalidProperty
    │   │   └── InvalidOption
    │   │       ├── IncompatibleOptions
    │   │       │   ├── ReplacesByFilter
    │   │       │   └── ReplacesPartitions
    │   │       ├── IdentityNotBigint   (also a pyspark UnsupportedOperationException)
    │   │       ├── InvalidArgument     (also a TypeError and a ValueError)
    │   │       └── UnreadableType      (also a pyspark ParseException)
    │   ├── UnsupportedSetting
    │   │   └── MissingDeltaJars
    │   ├── NonPartitionColumn
    │   ├── InvalidTimestamp
    │   ├── AmbiguousTimeTravel
    │   ├── NoChangeStart
    │   ├── InvalidChangeRange
    │   ├── ChangeDataNotRecorded
    │   ├── ChangeSchemaChanged
    │   │   └── ChangeSchemaDiffers
    │   ├── ColumnInUse
    │   ├── RowViolation
    │   │   ├── NotNullViolated
    │   │   ├── CheckConstraintViolated
    │   │   └── LengthExceeded
    │   ├── EmptyDirectory
    │   ├── UnreadableFooter
    │   ├── SchemaMergeFailed
    │   ├── UnexpectedPartition
    │   ├── ConversionRefused
    │   ├── NameNotConverted
    │   ├── CloneRefused
    │   ├── UnsupportedCloneSource
    │   ├── AppendOnlyTable
    │   ├── TableAlreadyExists
    │   │   └── NameTaken
    │   ├── LocationNotEmpty
    │   ├── UnknownSchema
    │   ├── RecursiveView
    │   ├── TemporaryInView
    │   ├── ViewIsNoTable
    │   ├── TableIsNoView
    │   ├── NoPlaceForNames
    │   ├── UnreadableEntry
    │   ├── RenameUnfinished
    │   ├── ReplaceWhereMismatch
    │   ├── UnknownUsingColumn
    │   ├── MisalignedUsingColumns
    │   ├── UnknownSourceVersion
    │   ├── IdentityColumnGiven
    │   ├── ConstraintNotMet
    │   ├── AmbiguousMerge
    │   ├── FeatureNotDropped
    │   ├── RetentionTooShort
    │   ├── LiteVacuumImpossible
    │   ├── ManifestRefused
    │   ├── SqlSyntaxError              (also a pyspark ParseException)
    │   ├── UnknownTable
    │   │   ├── NotADeltaTable
    │   │   └── UnknownPathOrName
    │   ├── TransactionStatement
    │   ├── SqlAnalysisError
    │   ├── NotBuilt
    │   ├── NotInTransaction
    │   ├── NeedsSpark
    │   │   └── StatementNeedsSpark
    │   └── UnsupportedCommand
    ├── ExecutionFailed                 Spark could not evaluate rows
    ├── StagedFilesRemain               what an attempt had written cannot be removed
    ├── MissingJava
    ├── MissingPySpark                  (also a ModuleNotFoundError)
    ├── CommitOutcomeUnknown            neither success nor failure: the store never answered
    └── DeltaConcurrentModificationException
        ├── ConcurrentAppendException
        ├── ConcurrentDeleteReadException
        ├── ConcurrentDeleteDeleteException
        ├── MetadataChangedException
        ├── ProtocolChangedException
        ├── ConcurrentTransactionException
        └── ConcurrentWriteException
            └── StagedFilesVacuumed

One file per family; all are imported from here. The text of a class is constant (its ``template``); what differs from
case to case are *facts*, which are attributes and stand in ``.facts``. ``retryable`` is true where running the same
command again may succeed. Where PySpark is installed the root is a ``PySparkException`` with ``getCondition()`` and
``getSqlState()``; where delta-spark's Python package is installed the seven conflicts are also its classes, so that an
existing ``except`` catches them.
"""

from __future__ import annotations

from anabranch.errors.catalog import NameTaken as NameTaken
from anabranch.errors.catalog import NoPlaceForNames as NoPlaceForNames
from anabranch.errors.catalog import NotADeltaTable as NotADeltaTable
from anabranch.errors.catalog import RecursiveView as RecursiveView
from anabranch.errors.catalog import RenameUnfinished as RenameUnfinished
from anabranch.errors.catalog import TableIsNoView as TableIsNoView
from anabranch.errors.catalog import TemporaryInView as TemporaryInView
from anabranch.errors.catalog import UnknownPathOrName as UnknownPathOrName
from anabranch.errors.catalog import UnknownSchema as UnknownSchema
from anabranch.errors.catalog import UnreadableEntry as UnreadableEntry
from anabranch.errors.catalog import ViewIsNoTable as ViewIsNoTable
from anabranch.errors.conflicts import ConcurrentAppendException as ConcurrentAppendException
from anabranch.errors.conflicts import ConcurrentDeleteDeleteException as ConcurrentDeleteDeleteException
from anabranch.errors.conflicts import ConcurrentDeleteReadException as ConcurrentDeleteReadException
from anabranch.errors.conflicts import ConcurrentTransactionException as ConcurrentTransactionException
from anabranch.errors.conflicts import ConcurrentWriteException as ConcurrentWriteException
from anabranch.errors.conflicts import DeltaConcurrentModificationException as DeltaConcurrentModificationException
from anabranch.errors.conflicts import MetadataChangedException as MetadataChangedException
from anabranch.errors.conflicts import ProtocolChangedException as ProtocolChangedException
from anabranch.errors.conflicts import StagedFilesVacuumed as StagedFilesVacuumed
from anabranch.errors.conversions import CloneRefused as CloneRefused
from anabranch.errors.conversions import ConversionRefused as ConversionRefused
from anabranch.errors.conversions import EmptyDirectory as EmptyDirectory
from anabranch.errors.conversions import NameNotConverted as NameNotConverted
from anabranch.errors.conversions import SchemaMergeFailed as SchemaMergeFailed
from anabranch.errors.conversions import UnexpectedPartition as UnexpectedPartition
from anabranch.errors.conversions import UnreadableFooter as UnreadableFooter
from anabranch.errors.conversions import UnsupportedCloneSource as UnsupportedCloneSource
from anabranch.errors.feeds import ChangeDataNotRecorded as ChangeDataNotRecorded
from anabranch.errors.feeds import ChangeFilesMissing as ChangeFilesMissing
from anabranch.errors.feeds import ChangeSchemaChanged as ChangeSchemaChanged
from anabranch.errors.feeds import ChangeSchemaDiffers as ChangeSchemaDiffers
from anabranch.errors.feeds import ChangeStartAfterLatest as ChangeStartAfterLatest
from anabranch.errors.feeds import InvalidChangeRange as InvalidChangeRange
from anabranch.errors.feeds import NoChangeStart as NoChangeStart
from anabranch.errors.inputs import AmbiguousMerge as AmbiguousMerge
from anabranch.errors.inputs import AmbiguousTimeTravel as AmbiguousTimeTravel
from anabranch.errors.inputs import AppendOnlyTable as AppendOnlyTable
from anabranch.errors.inputs import ColumnInUse as ColumnInUse
from anabranch.errors.inputs import ConstraintNotBoolean as ConstraintNotBoolean
from anabranch.errors.inputs import DefaultDoesNotFit as DefaultDoesNotFit
from anabranch.errors.inputs import FeatureNotDropped as FeatureNotDropped
from anabranch.errors.inputs import IdentityNotBigint as IdentityNotBigint
from anabranch.errors.inputs import InputError as InputError
from anabranch.errors.inputs import InvalidArgument as InvalidArgument
from anabranch.errors.inputs import InvalidCondition as InvalidCondition
from anabranch.errors.inputs import InvalidConstraintName as InvalidConstraintName
from anabranch.errors.inputs import InvalidOption as InvalidOption
from anabranch.errors.inputs import InvalidProperty as InvalidProperty
from anabranch.errors.inputs import InvalidTimestamp as InvalidTimestamp
from anabranch.errors.inputs import LiteVacuumImpossible as LiteVacuumImpossible
from anabranch.errors.inputs import LocationNotEmpty as LocationNotEmpty
from anabranch.errors.inputs import LoneSurrogate as LoneSurrogate
from anabranch.errors.inputs import ManifestRefused as ManifestRefused
from anabranch.errors.inputs import NeedsSpark as NeedsSpark
from anabranch.errors.inputs import Nondeterministic as Nondeterministic
from anabranch.errors.inputs import NotBuilt as NotBuilt
from anabranch.errors.inputs import NotInTransaction as NotInTransaction
from anabranch.errors.inputs import RetentionTooShort as RetentionTooShort
from anabranch.errors.inputs import RuleRefused as RuleRefused
from anabranch.errors.inputs import SqlAnalysisError as SqlAnalysisError
from anabranch.errors.inputs import SqlSyntaxError as SqlSyntaxError
from anabranch.errors.inputs import StatementNeedsSpark as StatementNeedsSpark
from anabranch.errors.inputs import TableAlreadyExists as TableAlreadyExists
from anabranch.errors.inputs import TableWithoutColumns as TableWithoutColumns
from anabranch.errors.inputs import TransactionStatement as TransactionStatement
from anabranch.errors.inputs import UnknownColumn as UnknownColumn
from anabranch.errors.inputs import UnknownSourceVersion as UnknownSourceVersion
from anabranch.errors.inputs import UnknownTable as UnknownTable
from anabranch.errors.inputs import UnreadableExpression as UnreadableExpression
from anabranch.errors.inputs import UnreadableType as UnreadableType
from anabranch.errors.inputs import UnsupportedCommand as UnsupportedCommand
from anabranch.errors.inputs import ValueRefused as ValueRefused
from anabranch.errors.replacing import AmbiguousReplaceColumns as AmbiguousReplaceColumns
from anabranch.errors.replacing import IncompatibleOptions as IncompatibleOptions
from anabranch.errors.replacing import MisalignedUsingColumns as MisalignedUsingColumns
from anabranch.errors.replacing import ReplacesByFilter as ReplacesByFilter
from anabranch.errors.replacing import ReplacesPartitions as ReplacesPartitions
from anabranch.errors.replacing import UnknownReplaceColumns as UnknownReplaceColumns
from anabranch.errors.replacing import UnknownUsingColumn as UnknownUsingColumn
from anabranch.errors.root import AnabranchError as AnabranchError
from anabranch.errors.running import CommitOutcomeUnknown as CommitOutcomeUnknown
from anabranch.errors.running import ExecutionFailed as ExecutionFailed
from anabranch.errors.running import MissingJava as MissingJava
from anabranch.errors.running import MissingPySpark as MissingPySpark
from anabranch.errors.running import StagedFilesRemain as StagedFilesRemain
from anabranch.errors.running import needs_pyspark as needs_pyspark
from anabranch.errors.schemas import GeneratedTypeMismatch as GeneratedTypeMismatch
from anabranch.errors.schemas import InvalidCharactersInColumnNames as InvalidCharactersInColumnNames
from anabranch.errors.schemas import InvalidSchema as InvalidSchema
from anabranch.errors.schemas import SchemaMismatch as SchemaMismatch
from anabranch.errors.schemas import UnsupportedType as UnsupportedType
from anabranch.errors.schemas import UnwritableVoid as UnwritableVoid
from anabranch.errors.settings import MissingDeltaJars as MissingDeltaJars
from anabranch.errors.settings import NonPartitionColumn as NonPartitionColumn
from anabranch.errors.settings import UnknownOption as UnknownOption
from anabranch.errors.settings import UnknownSetting as UnknownSetting
from anabranch.errors.settings import UnsupportedSetting as UnsupportedSetting
from anabranch.errors.stores import AlreadyExists as AlreadyExists
from anabranch.errors.stores import MissingConnector as MissingConnector
from anabranch.errors.stores import NoCredentials as NoCredentials
from anabranch.errors.stores import NoSuchBucket as NoSuchBucket
from anabranch.errors.stores import NotFound as NotFound
from anabranch.errors.stores import PutOutcomeUnknown as PutOutcomeUnknown
from anabranch.errors.stores import StoreError as StoreError
from anabranch.errors.stores import StoreFull as StoreFull
from anabranch.errors.stores import StorePermissionDenied as StorePermissionDenied
from anabranch.errors.stores import UnknownStore as UnknownStore
from anabranch.errors.stores import WrongRegion as WrongRegion
from anabranch.errors.streams import InvalidStreamOffset as InvalidStreamOffset
from anabranch.errors.streams import StreamChanges as StreamChanges
from anabranch.errors.streams import StreamDeletes as StreamDeletes
from anabranch.errors.streams import StreamMetadataChanged as StreamMetadataChanged
from anabranch.errors.streams import StreamSchemaIncompatible as StreamSchemaIncompatible
from anabranch.errors.streams import StreamStopped as StreamStopped
from anabranch.errors.streams import StreamTableReplaced as StreamTableReplaced
from anabranch.errors.streams import StreamVersionsLost as StreamVersionsLost
from anabranch.errors.tables import CorruptLog as CorruptLog
from anabranch.errors.tables import CorruptVector as CorruptVector
from anabranch.errors.tables import FileOutsideTable as FileOutsideTable
from anabranch.errors.tables import InvalidPartitionValue as InvalidPartitionValue
from anabranch.errors.tables import LiveFilesNotConfirmed as LiveFilesNotConfirmed
from anabranch.errors.tables import MissingDataFile as MissingDataFile
from anabranch.errors.tables import NotATable as NotATable
from anabranch.errors.tables import RestoreFilesMissing as RestoreFilesMissing
from anabranch.errors.tables import TableError as TableError
from anabranch.errors.tables import TimestampAfterLatestCommit as TimestampAfterLatestCommit
from anabranch.errors.tables import TimestampBeforeEarliestCommit as TimestampBeforeEarliestCommit
from anabranch.errors.tables import UnsupportedFeature as UnsupportedFeature
from anabranch.errors.tables import UnsupportedVector as UnsupportedVector
from anabranch.errors.tables import VersionCleanedUp as VersionCleanedUp
from anabranch.errors.tables import VersionNotFound as VersionNotFound
from anabranch.errors.tables import VersionReplaced as VersionReplaced
from anabranch.errors.violations import CheckConstraintViolated as CheckConstraintViolated
from anabranch.errors.violations import ConstraintNotMet as ConstraintNotMet
from anabranch.errors.violations import IdentityColumnGiven as IdentityColumnGiven
from anabranch.errors.violations import LengthExceeded as LengthExceeded
from anabranch.errors.violations import NotNullViolated as NotNullViolated
from anabranch.errors.violations import ReplaceWhereMismatch as ReplaceWhereMismatch
from anabranch.errors.violations import RowViolation as RowViolation

__all__ = [name for name, value in list(globals().items()) if isinstance(value, type)]

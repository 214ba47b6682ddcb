//! The Go structs of a pod template: `k8s.io/api/core/v1` and `meta/v1` of Kubernetes 1.34.
//!
//! Go encodes the fields of a struct in the order of their declaration, so the table has that order. Each field has its
//! type: `*` is a pointer, `[]` a list, `{}` a map with strings as keys, and `?` the tag `omitempty`. The fields of an
//! embedded struct are listed where it is embedded, which is where Go encodes them.
//!
//! `creationTimestamp` is a struct that Go omits when it is zero, as if it were a pointer.

#![allow(non_upper_case_globals, reason = "these are Go's names")]

use super::types::{Field, Struct, Type};

macro_rules! structs {
    ($($name:ident { $($field:ident($($tag:tt)+))+ })+) => {
        $(pub(super) static $name: Struct = Struct(&[$(field!($field $($tag)+)),+]);)+
    };
}

macro_rules! field {
    ($name:ident ? $($of:tt)+) => {
        Field { name: stringify!($name), omit_empty: true, of: of!($($of)+) }
    };
    ($name:ident $($of:tt)+) => {
        Field { name: stringify!($name), omit_empty: false, of: of!($($of)+) }
    };
}

macro_rules! of {
    (bool) => { Type::Bool };
    (int) => { Type::Int };
    (intOrString) => { Type::IntOrString };
    (quantity) => { Type::Quantity };
    (raw) => { Type::Raw };
    (text) => { Type::Text };
    (time) => { Type::Time };
    ([$($of:tt)+]) => { Type::List(&of!($($of)+)) };
    ({$($of:tt)+}) => { Type::Map(&of!($($of)+)) };
    (*$($of:tt)+) => { Type::Pointer(&of!($($of)+)) };
    ($name:ident) => { Type::Struct(&$name) };
}

structs! {
    PodTemplateSpec { metadata(?ObjectMeta) spec(?PodSpec) }
    ObjectMeta {
        name(?text) generateName(?text) namespace(?text) selfLink(?text) uid(?text) resourceVersion(?text)
        generation(?int) creationTimestamp(?*time) deletionTimestamp(?*time)
        deletionGracePeriodSeconds(?*int) labels(?{text}) annotations(?{text})
        ownerReferences(?[OwnerReference]) finalizers(?[text]) managedFields(?[ManagedFieldsEntry])
    }
    PodSpec {
        volumes(?[Volume]) initContainers(?[Container]) containers([Container])
        ephemeralContainers(?[EphemeralContainer]) restartPolicy(?text) terminationGracePeriodSeconds(?*int)
        activeDeadlineSeconds(?*int) dnsPolicy(?text) nodeSelector(?{text}) serviceAccountName(?text)
        serviceAccount(?text) automountServiceAccountToken(?*bool) nodeName(?text) hostNetwork(?bool)
        hostPID(?bool) hostIPC(?bool) shareProcessNamespace(?*bool) securityContext(?*PodSecurityContext)
        imagePullSecrets(?[LocalObjectReference]) hostname(?text) subdomain(?text) affinity(?*Affinity)
        schedulerName(?text) tolerations(?[Toleration]) hostAliases(?[HostAlias]) priorityClassName(?text)
        priority(?*int) dnsConfig(?*PodDNSConfig) readinessGates(?[PodReadinessGate]) runtimeClassName(?*text)
        enableServiceLinks(?*bool) preemptionPolicy(?*text) overhead(?{quantity})
        topologySpreadConstraints(?[TopologySpreadConstraint]) setHostnameAsFQDN(?*bool) os(?*PodOS)
        hostUsers(?*bool) schedulingGates(?[PodSchedulingGate]) resourceClaims(?[PodResourceClaim])
        resources(?*ResourceRequirements) hostnameOverride(?*text)
    }
    OwnerReference {
        apiVersion(text) kind(text) name(text) uid(text) controller(?*bool) blockOwnerDeletion(?*bool)
    }
    ManagedFieldsEntry {
        manager(?text) operation(?text) apiVersion(?text) time(?*time) fieldsType(?text) fieldsV1(?*raw)
        subresource(?text)
    }
    Volume {
        name(text) hostPath(?*HostPathVolumeSource) emptyDir(?*EmptyDirVolumeSource)
        gcePersistentDisk(?*GCEPersistentDiskVolumeSource)
        awsElasticBlockStore(?*AWSElasticBlockStoreVolumeSource) gitRepo(?*GitRepoVolumeSource)
        secret(?*SecretVolumeSource) nfs(?*NFSVolumeSource) iscsi(?*ISCSIVolumeSource)
        glusterfs(?*GlusterfsVolumeSource) persistentVolumeClaim(?*PersistentVolumeClaimVolumeSource)
        rbd(?*RBDVolumeSource) flexVolume(?*FlexVolumeSource) cinder(?*CinderVolumeSource)
        cephfs(?*CephFSVolumeSource) flocker(?*FlockerVolumeSource) downwardAPI(?*DownwardAPIVolumeSource)
        fc(?*FCVolumeSource) azureFile(?*AzureFileVolumeSource) configMap(?*ConfigMapVolumeSource)
        vsphereVolume(?*VsphereVirtualDiskVolumeSource) quobyte(?*QuobyteVolumeSource)
        azureDisk(?*AzureDiskVolumeSource) photonPersistentDisk(?*PhotonPersistentDiskVolumeSource)
        projected(?*ProjectedVolumeSource) portworxVolume(?*PortworxVolumeSource)
        scaleIO(?*ScaleIOVolumeSource) storageos(?*StorageOSVolumeSource) csi(?*CSIVolumeSource)
        ephemeral(?*EphemeralVolumeSource) image(?*ImageVolumeSource)
    }
    Container {
        name(text) image(?text) command(?[text]) args(?[text]) workingDir(?text) ports(?[ContainerPort])
        envFrom(?[EnvFromSource]) env(?[EnvVar]) resources(?ResourceRequirements)
        resizePolicy(?[ContainerResizePolicy]) restartPolicy(?*text)
        restartPolicyRules(?[ContainerRestartRule]) volumeMounts(?[VolumeMount])
        volumeDevices(?[VolumeDevice]) livenessProbe(?*Probe) readinessProbe(?*Probe) startupProbe(?*Probe)
        lifecycle(?*Lifecycle) terminationMessagePath(?text) terminationMessagePolicy(?text)
        imagePullPolicy(?text) securityContext(?*SecurityContext) stdin(?bool) stdinOnce(?bool) tty(?bool)
    }
    EphemeralContainer {
        name(text) image(?text) command(?[text]) args(?[text]) workingDir(?text) ports(?[ContainerPort])
        envFrom(?[EnvFromSource]) env(?[EnvVar]) resources(?ResourceRequirements)
        resizePolicy(?[ContainerResizePolicy]) restartPolicy(?*text)
        restartPolicyRules(?[ContainerRestartRule]) volumeMounts(?[VolumeMount])
        volumeDevices(?[VolumeDevice]) livenessProbe(?*Probe) readinessProbe(?*Probe) startupProbe(?*Probe)
        lifecycle(?*Lifecycle) terminationMessagePath(?text) terminationMessagePolicy(?text)
        imagePullPolicy(?text) securityContext(?*SecurityContext) stdin(?bool) stdinOnce(?bool) tty(?bool)
        targetContainerName(?text)
    }
    PodSecurityContext {
        seLinuxOptions(?*SELinuxOptions) windowsOptions(?*WindowsSecurityContextOptions) runAsUser(?*int)
        runAsGroup(?*int) runAsNonRoot(?*bool) supplementalGroups(?[int]) supplementalGroupsPolicy(?*text)
        fsGroup(?*int) sysctls(?[Sysctl]) fsGroupChangePolicy(?*text) seccompProfile(?*SeccompProfile)
        appArmorProfile(?*AppArmorProfile) seLinuxChangePolicy(?*text)
    }
    LocalObjectReference { name(?text) }
    Affinity { nodeAffinity(?*NodeAffinity) podAffinity(?*PodAffinity) podAntiAffinity(?*PodAntiAffinity) }
    Toleration { key(?text) operator(?text) value(?text) effect(?text) tolerationSeconds(?*int) }
    HostAlias { ip(text) hostnames(?[text]) }
    PodDNSConfig { nameservers(?[text]) searches(?[text]) options(?[PodDNSConfigOption]) }
    PodReadinessGate { conditionType(text) }
    TopologySpreadConstraint {
        maxSkew(int) topologyKey(text) whenUnsatisfiable(text) labelSelector(?*LabelSelector)
        minDomains(?*int) nodeAffinityPolicy(?*text) nodeTaintsPolicy(?*text) matchLabelKeys(?[text])
    }
    PodOS { name(text) }
    PodSchedulingGate { name(text) }
    PodResourceClaim { name(text) resourceClaimName(?*text) resourceClaimTemplateName(?*text) }
    ResourceRequirements { limits(?{quantity}) requests(?{quantity}) claims(?[ResourceClaim]) }
    HostPathVolumeSource { path(text) type(?*text) }
    EmptyDirVolumeSource { medium(?text) sizeLimit(?*quantity) }
    GCEPersistentDiskVolumeSource { pdName(text) fsType(?text) partition(?int) readOnly(?bool) }
    AWSElasticBlockStoreVolumeSource { volumeID(text) fsType(?text) partition(?int) readOnly(?bool) }
    GitRepoVolumeSource { repository(text) revision(?text) directory(?text) }
    SecretVolumeSource { secretName(?text) items(?[KeyToPath]) defaultMode(?*int) optional(?*bool) }
    NFSVolumeSource { server(text) path(text) readOnly(?bool) }
    ISCSIVolumeSource {
        targetPortal(text) iqn(text) lun(int) iscsiInterface(?text) fsType(?text) readOnly(?bool)
        portals(?[text]) chapAuthDiscovery(?bool) chapAuthSession(?bool) secretRef(?*LocalObjectReference)
        initiatorName(?*text)
    }
    GlusterfsVolumeSource { endpoints(text) path(text) readOnly(?bool) }
    PersistentVolumeClaimVolumeSource { claimName(text) readOnly(?bool) }
    RBDVolumeSource {
        monitors([text]) image(text) fsType(?text) pool(?text) user(?text) keyring(?text)
        secretRef(?*LocalObjectReference) readOnly(?bool)
    }
    FlexVolumeSource {
        driver(text) fsType(?text) secretRef(?*LocalObjectReference) readOnly(?bool) options(?{text})
    }
    CinderVolumeSource { volumeID(text) fsType(?text) readOnly(?bool) secretRef(?*LocalObjectReference) }
    CephFSVolumeSource {
        monitors([text]) path(?text) user(?text) secretFile(?text) secretRef(?*LocalObjectReference)
        readOnly(?bool)
    }
    FlockerVolumeSource { datasetName(?text) datasetUUID(?text) }
    DownwardAPIVolumeSource { items(?[DownwardAPIVolumeFile]) defaultMode(?*int) }
    FCVolumeSource { targetWWNs(?[text]) lun(?*int) fsType(?text) readOnly(?bool) wwids(?[text]) }
    AzureFileVolumeSource { secretName(text) shareName(text) readOnly(?bool) }
    ConfigMapVolumeSource { name(?text) items(?[KeyToPath]) defaultMode(?*int) optional(?*bool) }
    VsphereVirtualDiskVolumeSource {
        volumePath(text) fsType(?text) storagePolicyName(?text) storagePolicyID(?text)
    }
    QuobyteVolumeSource { registry(text) volume(text) readOnly(?bool) user(?text) group(?text) tenant(?text) }
    AzureDiskVolumeSource {
        diskName(text) diskURI(text) cachingMode(?*text) fsType(?*text) readOnly(?*bool) kind(?*text)
    }
    PhotonPersistentDiskVolumeSource { pdID(text) fsType(?text) }
    ProjectedVolumeSource { sources([VolumeProjection]) defaultMode(?*int) }
    PortworxVolumeSource { volumeID(text) fsType(?text) readOnly(?bool) }
    ScaleIOVolumeSource {
        gateway(text) system(text) secretRef(*LocalObjectReference) sslEnabled(?bool) protectionDomain(?text)
        storagePool(?text) storageMode(?text) volumeName(?text) fsType(?text) readOnly(?bool)
    }
    StorageOSVolumeSource {
        volumeName(?text) volumeNamespace(?text) fsType(?text) readOnly(?bool)
        secretRef(?*LocalObjectReference)
    }
    CSIVolumeSource {
        driver(text) readOnly(?*bool) fsType(?*text) volumeAttributes(?{text})
        nodePublishSecretRef(?*LocalObjectReference)
    }
    EphemeralVolumeSource { volumeClaimTemplate(?*PersistentVolumeClaimTemplate) }
    ImageVolumeSource { reference(?text) pullPolicy(?text) }
    ContainerPort { name(?text) hostPort(?int) containerPort(int) protocol(?text) hostIP(?text) }
    EnvFromSource { prefix(?text) configMapRef(?*ConfigMapEnvSource) secretRef(?*SecretEnvSource) }
    EnvVar { name(text) value(?text) valueFrom(?*EnvVarSource) }
    ContainerResizePolicy { resourceName(text) restartPolicy(text) }
    ContainerRestartRule { action(?text) exitCodes(?*ContainerRestartRuleOnExitCodes) }
    VolumeMount {
        name(text) readOnly(?bool) recursiveReadOnly(?*text) mountPath(text) subPath(?text)
        mountPropagation(?*text) subPathExpr(?text)
    }
    VolumeDevice { name(text) devicePath(text) }
    Probe {
        exec(?*ExecAction) httpGet(?*HTTPGetAction) tcpSocket(?*TCPSocketAction) grpc(?*GRPCAction)
        initialDelaySeconds(?int) timeoutSeconds(?int) periodSeconds(?int) successThreshold(?int)
        failureThreshold(?int) terminationGracePeriodSeconds(?*int)
    }
    Lifecycle { postStart(?*LifecycleHandler) preStop(?*LifecycleHandler) stopSignal(?*text) }
    SecurityContext {
        capabilities(?*Capabilities) privileged(?*bool) seLinuxOptions(?*SELinuxOptions)
        windowsOptions(?*WindowsSecurityContextOptions) runAsUser(?*int) runAsGroup(?*int)
        runAsNonRoot(?*bool) readOnlyRootFilesystem(?*bool) allowPrivilegeEscalation(?*bool) procMount(?*text)
        seccompProfile(?*SeccompProfile) appArmorProfile(?*AppArmorProfile)
    }
    SELinuxOptions { user(?text) role(?text) type(?text) level(?text) }
    WindowsSecurityContextOptions {
        gmsaCredentialSpecName(?*text) gmsaCredentialSpec(?*text) runAsUserName(?*text) hostProcess(?*bool)
    }
    Sysctl { name(text) value(text) }
    SeccompProfile { type(text) localhostProfile(?*text) }
    AppArmorProfile { type(text) localhostProfile(?*text) }
    NodeAffinity {
        requiredDuringSchedulingIgnoredDuringExecution(?*NodeSelector)
        preferredDuringSchedulingIgnoredDuringExecution(?[PreferredSchedulingTerm])
    }
    PodAffinity {
        requiredDuringSchedulingIgnoredDuringExecution(?[PodAffinityTerm])
        preferredDuringSchedulingIgnoredDuringExecution(?[WeightedPodAffinityTerm])
    }
    PodAntiAffinity {
        requiredDuringSchedulingIgnoredDuringExecution(?[PodAffinityTerm])
        preferredDuringSchedulingIgnoredDuringExecution(?[WeightedPodAffinityTerm])
    }
    PodDNSConfigOption { name(?text) value(?*text) }
    LabelSelector { matchLabels(?{text}) matchExpressions(?[LabelSelectorRequirement]) }
    ResourceClaim { name(text) request(?text) }
    KeyToPath { key(text) path(text) mode(?*int) }
    DownwardAPIVolumeFile {
        path(text) fieldRef(?*ObjectFieldSelector) resourceFieldRef(?*ResourceFieldSelector) mode(?*int)
    }
    VolumeProjection {
        secret(?*SecretProjection) downwardAPI(?*DownwardAPIProjection) configMap(?*ConfigMapProjection)
        serviceAccountToken(?*ServiceAccountTokenProjection)
        clusterTrustBundle(?*ClusterTrustBundleProjection) podCertificate(?*PodCertificateProjection)
    }
    PersistentVolumeClaimTemplate { metadata(?ObjectMeta) spec(PersistentVolumeClaimSpec) }
    ConfigMapEnvSource { name(?text) optional(?*bool) }
    SecretEnvSource { name(?text) optional(?*bool) }
    EnvVarSource {
        fieldRef(?*ObjectFieldSelector) resourceFieldRef(?*ResourceFieldSelector)
        configMapKeyRef(?*ConfigMapKeySelector) secretKeyRef(?*SecretKeySelector)
        fileKeyRef(?*FileKeySelector)
    }
    ContainerRestartRuleOnExitCodes { operator(?text) values(?[int]) }
    ExecAction { command(?[text]) }
    HTTPGetAction { path(?text) port(intOrString) host(?text) scheme(?text) httpHeaders(?[HTTPHeader]) }
    TCPSocketAction { port(intOrString) host(?text) }
    GRPCAction { port(int) service(*text) }
    LifecycleHandler {
        exec(?*ExecAction) httpGet(?*HTTPGetAction) tcpSocket(?*TCPSocketAction) sleep(?*SleepAction)
    }
    Capabilities { add(?[text]) drop(?[text]) }
    NodeSelector { nodeSelectorTerms([NodeSelectorTerm]) }
    PreferredSchedulingTerm { weight(int) preference(NodeSelectorTerm) }
    PodAffinityTerm {
        labelSelector(?*LabelSelector) namespaces(?[text]) topologyKey(text)
        namespaceSelector(?*LabelSelector) matchLabelKeys(?[text]) mismatchLabelKeys(?[text])
    }
    WeightedPodAffinityTerm { weight(int) podAffinityTerm(PodAffinityTerm) }
    LabelSelectorRequirement { key(text) operator(text) values(?[text]) }
    ObjectFieldSelector { apiVersion(?text) fieldPath(text) }
    ResourceFieldSelector { containerName(?text) resource(text) divisor(?quantity) }
    SecretProjection { name(?text) items(?[KeyToPath]) optional(?*bool) }
    DownwardAPIProjection { items(?[DownwardAPIVolumeFile]) }
    ConfigMapProjection { name(?text) items(?[KeyToPath]) optional(?*bool) }
    ServiceAccountTokenProjection { audience(?text) expirationSeconds(?*int) path(text) }
    ClusterTrustBundleProjection {
        name(?*text) signerName(?*text) labelSelector(?*LabelSelector) optional(?*bool) path(text)
    }
    PodCertificateProjection {
        signerName(?text) keyType(?text) maxExpirationSeconds(?*int) credentialBundlePath(?text)
        keyPath(?text) certificateChainPath(?text)
    }
    PersistentVolumeClaimSpec {
        accessModes(?[text]) selector(?*LabelSelector) resources(?VolumeResourceRequirements)
        volumeName(?text) storageClassName(?*text) volumeMode(?*text) dataSource(?*TypedLocalObjectReference)
        dataSourceRef(?*TypedObjectReference) volumeAttributesClassName(?*text)
    }
    ConfigMapKeySelector { name(?text) key(text) optional(?*bool) }
    SecretKeySelector { name(?text) key(text) optional(?*bool) }
    FileKeySelector { volumeName(text) path(text) key(text) optional(?*bool) }
    HTTPHeader { name(text) value(text) }
    SleepAction { seconds(int) }
    NodeSelectorTerm { matchExpressions(?[NodeSelectorRequirement]) matchFields(?[NodeSelectorRequirement]) }
    VolumeResourceRequirements { limits(?{quantity}) requests(?{quantity}) }
    TypedLocalObjectReference { apiGroup(*text) kind(text) name(text) }
    TypedObjectReference { apiGroup(*text) kind(text) name(text) namespace(?*text) }
    NodeSelectorRequirement { key(text) operator(text) values(?[text]) }
}

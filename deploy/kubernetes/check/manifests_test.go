// Package check reads the Kubernetes manifests by the API's own types, strictly, and
// checks what those can't: that the parts fit each other. It is a module of its
// own, so that strake does not depend on Kubernetes.
package check

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifests are all objects of the folder above.
type manifests struct {
	sets     map[string]*apps.StatefulSet
	services map[string]*core.Service
	budgets  map[string]*policy.PodDisruptionBudget
	configs  map[string]*core.ConfigMap
}

func load(t *testing.T) manifests {
	t.Helper()
	m := manifests{map[string]*apps.StatefulSet{}, map[string]*core.Service{}, map[string]*policy.PodDisruptionBudget{}, map[string]*core.ConfigMap{}}
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m.add(t, f, b)
	}
	return m
}

// add decodes a file; a field that the API does not know is an error.
func (m manifests) add(t *testing.T, file string, b []byte) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, core.AddToScheme, policy.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(b)))
	defer documents.Close()
	for {
		buf := make([]byte, len(b)+1)
		n, err := documents.Read(buf)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		object, _, err := decoder.Decode(buf[:n], nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch o := object.(type) {
		case *apps.StatefulSet:
			m.sets[o.Name] = o
		case *core.Service:
			m.services[o.Name] = o
		case *policy.PodDisruptionBudget:
			m.budgets[o.Name] = o
		case *core.ConfigMap:
			m.configs[o.Name] = o
		default:
			t.Fatalf("%s: %T was not expected", file, o)
		}
	}
}

func TestManifestsAreWhatTheAPIKnows(t *testing.T) {
	m := load(t)
	if len(m.sets) != 2 || len(m.services) != 2 || len(m.budgets) != 2 || len(m.configs) != 1 {
		t.Errorf("%d StatefulSets, %d Services, %d PodDisruptionBudgets, %d ConfigMaps", len(m.sets), len(m.services), len(m.budgets), len(m.configs))
	}
	for name := range m.sets {
		if bad := validation.IsDNS1123Label(name); len(bad) > 0 {
			t.Errorf("%s: %v", name, bad)
		}
	}
}

func TestAMisspeltFieldIsFound(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apps.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../meta.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, set, _ := strings.Cut(string(b), "kind: PodDisruptionBudget")
	_, set, _ = strings.Cut(set, "---\n")
	wrong := strings.Replace(set, "serviceName:", "servicename:", 1)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	if _, _, err := decoder.Decode([]byte(set), nil, nil); err != nil {
		t.Fatalf("as it is: %v", err)
	}
	if _, _, err := decoder.Decode([]byte(wrong), nil, nil); err == nil {
		t.Fatal("nobody saw the misspelt field")
	}
}

// selects tells whether a selector finds the pods of a set.
func selects(t *testing.T, s *meta.LabelSelector, set *apps.StatefulSet) bool {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return !selector.Empty() && selector.Matches(labels.Set(set.Spec.Template.Labels))
}

func TestPartsFitEachOther(t *testing.T) {
	m := load(t)
	for name, set := range m.sets {
		spec := set.Spec
		if !selects(t, spec.Selector, set) {
			t.Errorf("%s does not find its own pods", name)
		}
		service := m.services[spec.ServiceName]
		if service == nil || service.Spec.ClusterIP != core.ClusterIPNone || !service.Spec.PublishNotReadyAddresses ||
			!labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(spec.Template.Labels)) {
			t.Errorf("%s: its service does not give each server a name from the start: %+v", name, service)
		}
		budget := m.budgets[name]
		if budget == nil || !selects(t, budget.Spec.Selector, set) || budget.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%s: budget %+v", name, budget)
		}
		apart := spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if len(apart) != 1 || apart[0].TopologyKey != "kubernetes.io/hostname" || !selects(t, apart[0].LabelSelector, set) {
			t.Errorf("%s: two servers may be on one node: %+v", name, apart)
		}
		if spec.PodManagementPolicy != apps.ParallelPodManagement {
			t.Errorf("%s: the cell can't form while its servers start one by one", name)
		}
	}
}

func TestContainersFit(t *testing.T) {
	m := load(t)
	for name, set := range m.sets {
		pod := set.Spec.Template.Spec
		if pod.SecurityContext == nil || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s runs as root", name)
		}
		if len(pod.Containers) != 1 {
			t.Fatalf("%s: %d containers", name, len(pod.Containers))
		}
		c := pod.Containers[0]
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, p := range m.services[set.Spec.ServiceName].Spec.Ports {
			if !ports[p.TargetPort.StrVal] {
				t.Errorf("%s: the service's port %s leads nowhere", name, p.Name)
			}
		}
		claims := map[string]bool{}
		for _, v := range set.Spec.VolumeClaimTemplates {
			claims[v.Name] = true
		}
		for _, v := range c.VolumeMounts {
			if !claims[v.Name] {
				t.Errorf("%s: nothing is called %s", name, v.Name)
			}
		}
		if len(c.EnvFrom) != 1 || m.configs[c.EnvFrom[0].ConfigMapRef.Name] == nil {
			t.Errorf("%s: no ConfigMap tells where etcd is", name)
		}
		for _, p := range []*core.Probe{c.ReadinessProbe, c.LivenessProbe} {
			if p != nil && (p.Exec == nil || len(p.Exec.Command) < 3 || p.Exec.Command[0] != "/strake" || p.Exec.Command[1] != "health") {
				t.Errorf("%s: a probe that is no `strake health`: %+v", name, p)
			}
		}
		if c.ReadinessProbe == nil {
			t.Errorf("%s: an update could not wait for it", name)
		}
	}
}
